#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "fit/fit_model.hpp"
#include "fit/parameters.hpp"

namespace vramlab {
namespace {

Bytes total(const std::vector<Bytes>& sizes) { return std::accumulate(sizes.begin(), sizes.end(), Bytes{0}); }

// Bytes of a tensor by shape; in a loop the sum of all rounds.
std::vector<Bytes> sizes_of(const UnionTensor& tensor, const std::vector<ShapeProgram>& shapes) {
  std::vector<Bytes> sizes(shapes.size(), 0);
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    if (const ShapeAllocation* one = tensor.in(shapes, shape)) sizes[shape] = total(one->sizes);
  }
  return sizes;
}

}  // namespace

FitResiduals count_residuals(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                             const std::vector<SizeKnowledge>& knowledge,
                             std::vector<InexactFamily>& inexact) {
  FitResiduals residuals;
  std::map<std::vector<Bytes>, std::size_t> families;
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const std::vector<Bytes> sizes = sizes_of(program.tensors[t], shapes);
    for (FitResiduals::Count* count :
         {&residuals.all, &residuals.by_knowledge[static_cast<std::size_t>(knowledge[t])]}) {
      ++count->tensors;
      count->bytes += total(sizes);
    }
    if (knowledge[t] != SizeKnowledge::exact && knowledge[t] != SizeKnowledge::borrowed) ++families[sizes];
  }
  for (const auto& [sizes, tensors] : families) inexact.push_back({sizes, tensors});
  std::stable_sort(inexact.begin(), inexact.end(), [](const InexactFamily& a, const InexactFamily& b) {
    return total(a.sizes) * a.tensors > total(b.sizes) * b.tensors;
  });
  return residuals;
}

void warn_of_thresholds(const RecordedSpec& spec, std::vector<std::string>& warnings) {
  for (std::uint32_t number = 0; number < spec.groups.size(); ++number) {
    const RecordedGroup& group = spec.groups[number];
    if (group.monomial < 0) continue;
    const auto count = std::count_if(spec.tensors.begin(), spec.tensors.end(),
                                     [&](const RecordedTensor& tensor) { return tensor.group == number; });
    std::int64_t low = 0;
    std::int64_t high = std::numeric_limits<std::int64_t>::max();
    const Monomial& monomial = spec.monomials[static_cast<std::size_t>(group.monomial)];
    for (const VariableValues& shape : spec.shapes) {
      const std::int64_t value = monomial.value(shape).value_or(0);
      if (value < group.from) low = std::max(low, value);
      if (value >= group.from) high = std::min(high, value);
    }
    if (count < 2 || high - low < 2) continue;
    warnings.push_back(fmt::format(
        "{} allocations {} somewhere between {} = {} and {}; {} is assumed. A step recorded there would show "
        "it.",
        count, group.below ? "end" : "begin", monomial.text(names_of(spec.variables)), low, high,
        group.from));
  }
}

void warn_of_workspaces(const RecordedSpec& spec, const FitResiduals& r, std::vector<std::string>& warnings) {
  const Bytes inexact = r.all.bytes - r.bytes_with_form();
  if (r.all.bytes == 0 || 50 * inexact < r.all.bytes || spec.shapes.size() < 2) return;
  const Monomial& monomial = spec.monomials[spec.main_product];
  std::vector<std::int64_t> products;
  for (const VariableValues& shape : spec.shapes) products.push_back(monomial.value(shape).value_or(0));
  const auto [low, high] = std::minmax_element(products.begin(), products.end());
  warnings.push_back(
      fmt::format("{} % of the bytes follow no form (workspaces); between recorded shapes they are "
                  "interpolated along {}, "
                  "beyond {} and {} they are a guess. Record the smallest and largest steps you care about.",
                  100 * inexact / r.all.bytes, monomial.text(names_of(spec.variables)), *low, *high));
}

}  // namespace vramlab
