// A second opinion on a caching allocator: every promise re-checked from its blocks alone.
#pragma once

#include <string>
#include <vector>

#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {

/// The invariants that do not hold, one line each; empty for a sound allocator.
///
/// Blocks cover their segments without holes, no two neighbours could be merged, free lists hold exactly the
/// cached blocks in their order, and every counter is the sum over the blocks it counts (R8.8).
std::vector<std::string> validate(const CachingAllocator& allocator);

}  // namespace vramlab
