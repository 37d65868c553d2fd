#include "policies/dual_optimizer_recovery.hpp"

#include <algorithm>

namespace vramlab {
namespace {

// A pair that already lies below its bounds must not grow because of a failure, hence the inner minimum.
std::int64_t scaled(std::int64_t value, double factor, std::int64_t unit, std::int64_t low) {
  const auto product = static_cast<std::int64_t>(static_cast<double>(value) * factor);
  return std::min(value, std::max(low, cut_to(product, unit)));
}

std::int64_t scaled_batch(const DualOptimizerOptions& o, const PairBounds& bounds, std::int64_t batch) {
  return scaled(batch, o.oom_factor, 1, bounds.low.batch);
}

// With two units at once, the coarser network's multiple is the one that must hold.
std::int64_t scaled_lq(const DualOptimizerOptions& o, const PairBounds& bounds, std::int64_t lq) {
  const std::int64_t product = scaled(lq, o.oom_factor, o.oom_lq_multiple, 0);
  return std::min(lq, std::max(bounds.low.lq, cut_to(product, o.lq_granularity)));
}

BatchAndLq scaled_pair(const DualOptimizerOptions& o, const PairBounds& bounds, BatchAndLq pair) {
  return {scaled_batch(o, bounds, pair.batch), scaled_lq(o, bounds, pair.lq)};
}

bool smaller(BatchAndLq a, BatchAndLq b) { return a.batch <= b.batch && a.lq <= b.lq && a != b; }

std::string times(const DualOptimizerOptions& o) { return " times " + format_option_value(o.oom_factor); }

}  // namespace

void PairMemory::note_failing(BatchAndLq pair) {
  if (std::find(failing_.begin(), failing_.end(), pair) == failing_.end()) failing_.push_back(pair);
}

Recovery PairMemory::recover(const DualOptimizerOptions& options, const PairBounds& bounds,
                             BatchAndLq now) const {
  const BatchAndLq both = scaled_pair(options, bounds, now);
  const Recovery of_both{both, "batch and lq" + times(options), both};
  if (options.oom_rule == OomRule::scale) {
    if (!options.oom_double_halving) return of_both;
    return {both, of_both.how, scaled_pair(options, bounds, both)};
  }
  if (safe_ && smaller(*safe_, now)) return {*safe_, "back to the last safe pair", *safe_};
  // Where the parameter moved last is at its minimum already, only the other one can still help.
  const bool one_moved = batch_moved_ != lq_moved_;
  if (one_moved && batch_moved_ && both.batch < now.batch) {
    return {{both.batch, now.lq}, "batch, which moved last," + times(options), {both.batch, now.lq}};
  }
  if (one_moved && lq_moved_ && both.lq < now.lq) {
    return {{now.batch, both.lq}, "lq, which moved last," + times(options), {now.batch, both.lq}};
  }
  return of_both;
}

}  // namespace vramlab
