// Repeated runs in the actions of a step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fit/shape_program.hpp"

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

}  // namespace vramlab
