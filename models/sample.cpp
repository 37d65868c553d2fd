#include "models/sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace vramlab {

std::vector<std::vector<std::size_t>> pack(std::span<const std::int64_t> costs, std::int64_t capacity) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<std::vector<std::size_t>> bins;
  std::vector<std::int64_t> sums;
  for (const std::size_t item : order) {
    const auto fits = std::find_if(sums.begin(), sums.end(),
                                   [&](std::int64_t sum) { return sum + costs[item] <= capacity; });
    const auto bin = static_cast<std::size_t>(fits - sums.begin());
    if (fits == sums.end()) {
      sums.push_back(0);
      bins.emplace_back();
    }
    sums[bin] += costs[item];
    bins[bin].push_back(item);
  }
  return bins;
}

std::int64_t next_size(std::int64_t size, double factor) {
  return std::max(std::llrint(static_cast<double>(size) * factor), static_cast<long long>(size + 1));
}

}  // namespace vramlab
