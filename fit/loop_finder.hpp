// Where a step repeats itself as often as a counter says.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/loops.hpp"
#include "fit/repetition.hpp"

namespace vramlab {

/// A loop as found in one shape, and what counts its rounds.
struct FoundLoop {
  Repetition at;
  std::uint32_t counter = 0;  // place in the list of counters
  std::int64_t plus = 0;
};

/// Loops in every shape, in the order of their places; the same loops in each. `take_out_loops` says what
/// counts as one.
std::vector<std::vector<FoundLoop>> find_loops(const std::vector<ShapeProgram>& shapes,
                                               const std::vector<LoopCounter>& counters);

}  // namespace vramlab
