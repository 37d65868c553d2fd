// What `dual-optimizer` does after an OOM, and what it remembers of pairs that failed or were safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/dual_optimizer_steps.hpp"

namespace vramlab {

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
  [[nodiscard]] const std::optional<BatchAndLq>& safe() const { return safe_; }

 private:
  std::vector<BatchAndLq> failing_;
  std::optional<BatchAndLq> safe_;
  bool batch_moved_ = false;
  bool lq_moved_ = false;
};

}  // namespace vramlab
