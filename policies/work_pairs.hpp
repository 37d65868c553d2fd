// The two parameters of a workload that `predictive` moves, and the work a pair of them does.
#pragma once

#include <cstdint>
#include <optional>

#include "policies/memory_law.hpp"
#include "policies/pair_search.hpp"
#include "policies/predictive_options.hpp"
#include "sim/core/parameter_space.hpp"

namespace vramlab {

/// Which parameters of a space are the batch and the size, and where the pair may lie.
class WorkPairs {
 public:
  /// Throws InputError if the options name a parameter that `space` lacks, or one twice, or if no multiple of
  /// the granularity lies within the size's bounds.
  WorkPairs(const PredictiveOptions& options, const ParameterSpace& space);

  [[nodiscard]] const PairBox& box() const { return box_; }
  [[nodiscard]] WorkPair of(const Point& point) const;

  /// The change that leads from `point` to `target`.
  [[nodiscard]] Point delta(const Point& point, const WorkPair& target) const;

  /// `pair` within the box, its size cut to the granularity.
  [[nodiscard]] WorkPair snapped(const WorkPair& pair) const;

  /// Work of a step: batch · size² for a patch (`lq`), batch · size for any other size.
  [[nodiscard]] double work(const WorkPair& pair) const;

 private:
  std::size_t batch_ = 0;
  std::optional<std::size_t> size_;
  bool is_area_ = false;
  PairBox box_;
};

/// The time of a step as base + work, learnt from steps, and with it what a pair is worth.
class WorkScore {
 public:
  WorkScore() = default;
  explicit WorkScore(WorkGoal goal) : goal_(goal) {}

  /// Learns that steps of `work` take `seconds` > 0.
  void learn(double work, double seconds);

  /// Work a step, or per second: the larger the better.
  [[nodiscard]] double of(const WorkPair& pair, double work) const;

  template <class State>
  void visit(State& state) {
    law_.visit(state);
    state(reference_);
  }

 private:
  WorkGoal goal_ = WorkGoal::lq_then_batch;
  LeastSquares<2> law_;
  double reference_ = 0;  ///< work of the first steps; 0 = none yet
};

}  // namespace vramlab
