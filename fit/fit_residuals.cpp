#include "fit/fit_residuals.hpp"

#include <algorithm>
#include <map>
#include <numeric>

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

}  // namespace vramlab
