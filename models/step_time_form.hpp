// How long a step takes, as a function of a workload's products: launching kernels, or computing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// max(floor, base + Σ slope · monomial). Below the floor the host is the bottleneck. All in seconds.
struct StepTimeForm {
  struct Slope {
    std::uint32_t monomial = 0;  ///< number in the workload's list
    double seconds = 0;          ///< for each unit of it, at least 0
    friend bool operator==(const Slope&, const Slope&) = default;
  };

  double floor_seconds = 0;
  double base_seconds = 0;
  std::vector<Slope> slopes;

  /// Duration at the monomials' values, to the nearest nanosecond; at most 1,000 s.
  [[nodiscard]] SimTime duration(std::span<const std::int64_t> monomials) const {
    double compute = base_seconds;
    for (const Slope& slope : slopes) {
      compute += slope.seconds * static_cast<double>(monomials[slope.monomial]);
    }
    return from_seconds(std::min(1000.0, std::max(floor_seconds, compute)));
  }

  friend bool operator==(const StepTimeForm&, const StepTimeForm&) = default;
};

}  // namespace vramlab
