// The first place where a simulation and a recording part, with the state around it.
#pragma once

#include <cstddef>
#include <string>

#include "sim/memory/caching_allocator.hpp"

namespace vramlab {

/// What differed, and where.
struct Divergence {
  std::size_t operation = 0;  ///< index in the log or history
  std::string kind;           ///< of the operation
  std::string what;           ///< a counter's name, "address", or a figure of the OOM message
  std::string recorded;
  std::string simulated;
  std::string state{};  ///< of the simulated allocator at that moment, for people
};

/// One line about an allocator: reserved bytes and segments, allocated bytes and blocks, free blocks with the
/// largest, and the settings that are not the default.
std::string describe_state(const CachingAllocator& allocator);

}  // namespace vramlab
