#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "fit/fit_model.hpp"

namespace vramlab {
namespace {

// Bytes of a tensor by shape; in a loop the sum of all rounds.
std::vector<Bytes> sizes_of(const UnionTensor& tensor, const std::vector<ShapeProgram>& shapes) {
  std::vector<Bytes> sizes(shapes.size(), 0);
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    if (tensor.in_shape[shape] < 0) continue;
    const auto& rounds = shapes[shape].allocations[static_cast<std::size_t>(tensor.in_shape[shape])].sizes;
    sizes[shape] = std::accumulate(rounds.begin(), rounds.end(), Bytes{0});
  }
  return sizes;
}

Bytes total(const std::vector<Bytes>& sizes) { return std::accumulate(sizes.begin(), sizes.end(), Bytes{0}); }

void add(FitResiduals& r, SizeKnowledge knowledge, Bytes bytes) {
  ++r.tensors;
  r.bytes += bytes;
  const auto count = [&](std::size_t& tensors, Bytes& sum) {
    ++tensors;
    sum += bytes;
  };
  switch (knowledge) {
    case SizeKnowledge::exact:
      return count(r.exact, r.exact_bytes);
    case SizeKnowledge::borrowed:
      return count(r.borrowed, r.borrowed_bytes);
    case SizeKnowledge::by_algorithm:
      return count(r.by_algorithm, r.by_algorithm_bytes);
    case SizeKnowledge::interpolated:
      return count(r.interpolated, r.interpolated_bytes);
    case SizeKnowledge::single:
      return count(r.single, r.single_bytes);
  }
}

std::vector<std::string> variable_names(const RecordedSpec& spec) {
  std::vector<std::string> names;
  for (const RecordedVariable& variable : spec.variables) names.push_back(variable.name);
  return names;
}

}  // namespace

FitResiduals count_residuals(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                             const SizeLaws& laws, std::vector<InexactFamily>& inexact) {
  FitResiduals residuals;
  std::map<std::vector<Bytes>, std::size_t> families;
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const std::vector<Bytes> sizes = sizes_of(program.tensors[t], shapes);
    add(residuals, laws.knowledge[t], total(sizes));
    const bool has_form =
        laws.knowledge[t] == SizeKnowledge::exact || laws.knowledge[t] == SizeKnowledge::borrowed;
    if (!has_form) ++families[sizes];
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
    const std::string product = monomial.text(variable_names(spec));
    warnings.push_back(std::to_string(count) + " allocations " + (group.below ? "end" : "begin") +
                       " somewhere between " + product + " = " + std::to_string(low) + " and " +
                       std::to_string(high) + "; " + std::to_string(group.from) +
                       " is assumed. A step recorded there would show it.");
  }
}

void warn_of_workspaces(const RecordedSpec& spec, const FitResiduals& r, std::vector<std::string>& warnings) {
  const Bytes inexact = r.by_algorithm_bytes + r.interpolated_bytes + r.single_bytes;
  if (r.bytes == 0 || 50 * inexact < r.bytes || spec.shapes.size() < 2) return;
  const Monomial& monomial = spec.monomials[spec.main_product];
  std::vector<std::int64_t> products;
  for (const VariableValues& shape : spec.shapes) products.push_back(monomial.value(shape).value_or(0));
  const auto [low, high] = std::minmax_element(products.begin(), products.end());
  warnings.push_back(std::to_string(100 * inexact / r.bytes) +
                     " % of the bytes follow no form (workspaces); between recorded shapes they are "
                     "interpolated along " +
                     monomial.text(variable_names(spec)) + ", beyond " + std::to_string(*low) + " and " +
                     std::to_string(*high) +
                     " they are a guess. Record the smallest and largest steps "
                     "you care about.");
}

}  // namespace vramlab
