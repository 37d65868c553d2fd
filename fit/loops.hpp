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

/// The actions of one step without `ensure`, as repetitions see them.
class ActionSequence {
 public:
  explicit ActionSequence(const ShapeProgram& program);

  [[nodiscard]] std::size_t size() const { return actions_.size(); }

  /// The longest repetitions of `period` actions with at least `least` rounds, each as early as possible.
  [[nodiscard]] std::vector<Repetition> runs(std::size_t period, std::size_t least) const;

  /// How often the actions at `start` repeat with `period`, at least 1; they may begin to repeat earlier.
  [[nodiscard]] std::size_t rounds_at(std::size_t start, std::size_t period) const;

  /// Whether the `period` actions at `start` are the same as those of `other` at `other_start`: kinds, and
  /// frees of what the same round allocated.
  [[nodiscard]] bool same_body(std::size_t start, const ActionSequence& other, std::size_t other_start,
                               std::size_t period) const;

 private:
  struct Action {
    bool allocates = false;
    bool repeats = true;      ///< false for what cannot be in a loop: kept tensors and their frees
    std::int64_t target = 0;  ///< number of the allocation
    std::int64_t before = 0;  ///< allocations before this action
  };
  [[nodiscard]] bool matches(std::size_t at, std::size_t period) const;
  [[nodiscard]] std::int64_t shift(std::size_t at, std::size_t period) const {
    return actions_[at + period].target - actions_[at].target;
  }

  std::vector<Action> actions_;
};

// Finds parts of a step that are done once an item or once a token, and takes them out.

/// Something whose number may be the number of rounds of a loop.
struct LoopCounter {
  std::uint32_t variable = 0;          ///< its number among the variables of the model
  std::vector<std::int64_t> by_shape;  ///< its value at each shape
};

/// Loops of one workload, and the programs with each body standing once.
struct LoopedPrograms {
  std::vector<RecordedLoop> loops;
  std::vector<ShapeProgram> shapes;
  ShapeProgram first_step;
};

/// Looks for them in the shape with the largest count: a run of actions that repeats, allocation for
/// allocation, with every free moving on by the same number of allocations a round, as often as a counter
/// plus a constant (0 to −3) says. Every other shape must repeat the same body exactly as often as its own
/// count says; otherwise the repetition is something else (layers) and stays as it is.
///
/// `first_step` has the shape `first_shape`; its `ensure` operations move in front of a loop they fall into.
LoopedPrograms take_out_loops(std::vector<ShapeProgram> shapes, ShapeProgram first_step,
                              std::size_t first_shape, std::vector<LoopCounter> counters);

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
