// How long a step takes: launching its kernels, or computing, whichever is longer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/units.hpp"

namespace vramlab {

/// max(floor, base + slope · pixels). Below the floor the host is the bottleneck: it cannot launch the
/// kernels of a step any faster, however small they are.
struct StepTimeLaw {
  double floor_seconds = 0;
  double base_seconds = 0;
  double seconds_per_pixel = 0;  ///< of the input, all samples together

  /// Duration of a step over `pixels` ≥ 0 input pixels, to the nearest nanosecond; at most 1,000 s.
  [[nodiscard]] SimTime duration(std::int64_t pixels) const {
    const double compute = base_seconds + seconds_per_pixel * static_cast<double>(pixels);
    return from_seconds(std::min(1000.0, std::max(floor_seconds, compute)));
  }

  friend bool operator==(const StepTimeLaw&, const StepTimeLaw&) = default;
};

}  // namespace vramlab
