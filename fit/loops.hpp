// Finds parts of a step that are done once an item or once a token, and takes them out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/union_program.hpp"

namespace vramlab {

/// `rounds` times the same `period` actions from `start` on.
struct Repetition {
  std::size_t start = 0;
  std::size_t period = 0;
  std::size_t rounds = 0;

  [[nodiscard]] std::size_t end() const { return start + period * rounds; }
};

/// Something whose number may be the number of rounds of a loop.
struct LoopCounter {
  std::uint32_t variable = 0;          ///< its number among the variables of the model
  std::vector<std::int64_t> by_shape;  ///< its value at each shape
  /// Sizes of the parts that the variable may be cut into, all with these numbers of parts; empty = the
  /// variable itself counts.
  std::vector<std::int64_t> parts{};
};

/// Loops of one workload, and the programs with each body standing once.
struct LoopedPrograms {
  std::vector<RecordedLoop> loops;  ///< all with one counter
  std::vector<std::int64_t> parts;  ///< of that counter
  std::vector<ShapeProgram> shapes;
  std::vector<MakingStep> making;
};

/// Looks for them in the shape with the largest count: a run of actions that repeats, allocation for
/// allocation, with every free moving on by the same number of allocations a round, as often as a counter
/// plus a constant (0 to −3) says. Every other shape must repeat the same body exactly as often as its own
/// count says; otherwise the repetition is something else (layers) and stays as it is. A loop over parts must
/// be most of the step; its body may have allocations more or less at another shape, and is found by aligning
/// the two steps.
///
/// The `ensure` operations of `making` steps move in front of a loop they fall into.
LoopedPrograms take_out_loops(std::vector<ShapeProgram> shapes, std::vector<MakingStep> making,
                              std::vector<LoopCounter> counters);

// Where a step repeats itself as often as a counter says.

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
