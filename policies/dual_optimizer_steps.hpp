// How far `dual-optimizer` moves batch and lq for a given usage: pure functions of options and figures.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/dual_optimizer_options.hpp"
#include "sim/core/parameter_space.hpp"

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

/// `value` cut to a multiple of `unit`, towards zero.
constexpr std::int64_t cut_to(std::int64_t value, std::int64_t unit) { return value / unit * unit; }

}  // namespace vramlab
