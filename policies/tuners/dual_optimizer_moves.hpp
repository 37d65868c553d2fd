// Where `dual-optimizer` goes: by usage, and after an OOM. Pure functions of options, figures and remembered
// pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/parameter_space.hpp"
#include "policies/tuners/dual_optimizer_options.hpp"

namespace vramlab {

/// The two parameters moved. A workload without one of them has 0 there.
struct BatchAndLq {
  std::int64_t batch = 0;
  std::int64_t lq = 0;

  friend bool operator==(const BatchAndLq&, const BatchAndLq&) = default;
};

/// Where batch and lq may lie: the options' bounds within the workload's, lq cut to its granularity.
struct PairBounds {
  BatchAndLq low;
  BatchAndLq high;
};

/// The workload's parameters "batch" and "lq", and the bounds that hold for them. A parameter that the
/// workload does not have is at both its bounds, 0.
class PairView {
 public:
  /// Throws InputError if the workload has neither, or if no value is left within the bounds of one.
  PairView(const DualOptimizerOptions& options, const ParameterSpace& space);

  [[nodiscard]] const PairBounds& bounds() const { return bounds_; }
  [[nodiscard]] BatchAndLq of(const Point& point) const;

  /// The change that leads from `point` to `target`; empty if there is none.
  [[nodiscard]] Point delta(const Point& point, BatchAndLq target) const;

 private:
  std::optional<std::size_t> batch_;
  std::optional<std::size_t> lq_;
  PairBounds bounds_;
};

/// What an evaluation asks for.
enum class Wish : std::uint8_t { grow, shrink, hold };

/// `usage` against the band: grow strictly below target - margin, shrink strictly above target + margin.
Wish wish_for(const DualOptimizerOptions& options, double usage);

/// The pair to go to from `now` at `usage`, within `bounds`; `now` itself for no change. Only one of the
/// two moves: growing, lq and batch only at the maximum of lq; shrinking, batch and lq only at the minimum
/// of batch. `failing` are pairs that ended in OOM.
BatchAndLq next_pair(const DualOptimizerOptions& options, const PairBounds& bounds,
                     const std::vector<BatchAndLq>& failing, BatchAndLq now, double usage);

/// Samples times area of a patch: what activations grow with. A parameter that a workload lacks counts as 1.
double area_of(BatchAndLq pair);

/// The pair below `now` at which a need of `usage` that grows with the area is at the target: batch gives way
/// first, lq where batch is at its minimum.
BatchAndLq cut_to_usage(const DualOptimizerOptions& options, const PairBounds& bounds, BatchAndLq now,
                        double usage);

/// `value` cut to a multiple of `unit`, towards zero.
constexpr std::int64_t cut_to(std::int64_t value, std::int64_t unit) { return value / unit * unit; }

// What `dual-optimizer` does after an OOM, and what it remembers of pairs that failed or were safe.

/// Where to go after a failed step.
struct Recovery {
  BatchAndLq target;   ///< never above the failed pair in either parameter
  std::string how;     ///< "back to the last safe pair", "batch times 0.75" …
  BatchAndLq tracked;  ///< what the tuner believes; differs from `target` with `oom_double_halving` only
};

/// Memory of pairs, and the rule for the next one.
class PairMemory {
 public:
  /// Notes that an evaluation at `pair` did not ask to shrink.
  void note_safe(BatchAndLq pair) { safe_ = pair; }

  /// Notes a change that was asked for, to know which parameter moved last.
  void note_change(BatchAndLq from, BatchAndLq to) {
    batch_moved_ = from.batch != to.batch;
    lq_moved_ = from.lq != to.lq;
  }

  /// Notes that a step at `pair` failed.
  void note_failing(BatchAndLq pair);

  /// The way out of a failure at `now`.
  [[nodiscard]] Recovery recover(const DualOptimizerOptions& options, const PairBounds& bounds,
                                 BatchAndLq now) const;

  [[nodiscard]] const std::vector<BatchAndLq>& failing() const { return failing_; }

 private:
  std::vector<BatchAndLq> failing_;
  std::optional<BatchAndLq> safe_;
  bool batch_moved_ = false;
  bool lq_moved_ = false;
};

}  // namespace vramlab
