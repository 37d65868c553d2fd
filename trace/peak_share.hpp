// A part of the memory held at a peak.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// Blocks that have something in common.
struct PeakShare {
  std::string name;                  ///< "resnet.py:151 forward", "1 to 10 MiB", "stream 0, default pools"
  std::vector<std::string> callers;  ///< of a frame: the next user frames outwards
  Bytes bytes = 0;
  std::uint64_t blocks = 0;
};

}  // namespace vramlab
