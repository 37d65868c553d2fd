// Figures as they appear in reasons and log lines.
#pragma once

#include <cstdint>
#include <string>

#include "sim/core/observation.hpp"

namespace vramlab {

/// `value` with `decimals` digits after the point, independent of the locale: "0.747".
std::string fixed_point(double value, int decimals);

/// With its sign: "+2", "-4", "+0".
std::string signed_number(std::int64_t value);

/// `part` of `memory.total` as a ratio. `memory.total` must not be 0.
inline double share_of_total(Bytes part, const MemoryView& memory) {
  return static_cast<double>(part) / static_cast<double>(memory.total);
}

}  // namespace vramlab
