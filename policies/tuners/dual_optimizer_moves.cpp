#include "policies/tuners/dual_optimizer_moves.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace vramlab {
namespace {

// int() of the published formulas, which cuts toward zero; capped first, because a quotient may be infinite.
std::int64_t whole(double quotient, std::int64_t most) {
  if (!(quotient < static_cast<double>(most))) return most;
  return static_cast<std::int64_t>(quotient);
}

std::int64_t round_up_to(std::int64_t value, std::int64_t unit) { return cut_to(value + unit - 1, unit); }

std::int64_t lq_step_up(const DualOptimizerOptions& o, double room) {
  if (!(room > o.lq_up_min_room)) return 0;
  const std::int64_t units = whole(room / o.lq_up_unit, o.lq_up_at_most);
  return std::min(o.lq_up_at_most, std::max(o.lq_up_at_least, o.lq_up_factor * units));
}

// Pairs may not be told apart by memory alone, so only failures that this pair contains count.
std::int64_t highest_lq(const DualOptimizerOptions& o, const PairBounds& bounds,
                        const std::vector<BatchAndLq>& failing, BatchAndLq now) {
  std::int64_t highest = bounds.high.lq;
  if (!o.avoid_failing) return highest;
  for (const BatchAndLq& pair : failing) {
    if (pair.batch <= now.batch) highest = std::min(highest, pair.lq - o.failing_lq_distance);
  }
  return cut_to(std::max<std::int64_t>(highest, 0), o.lq_granularity);
}

bool area_fits(const DualOptimizerOptions& o, std::int64_t from, std::int64_t to, double usage) {
  const double side = static_cast<double>(to) / static_cast<double>(from);
  return usage * side * side <= o.target_vram_usage;
}

BatchAndLq grown_lq(const DualOptimizerOptions& o, const PairBounds& bounds,
                    const std::vector<BatchAndLq>& failing, BatchAndLq now, double usage) {
  const std::int64_t step = lq_step_up(o, o.target_vram_usage - usage);
  if (step == 0) return now;
  const std::int64_t wanted = round_up_to(now.lq + step, o.lq_granularity);
  const std::int64_t target = std::min(wanted, highest_lq(o, bounds, failing, now));
  if (target <= now.lq) return now;
  // The steps were made for single pixels; one blown up to 32 may cost far more than the room it was made
  // for.
  const bool enlarged = target - now.lq > step;
  if (o.area_check && enlarged && !area_fits(o, now.lq, target, usage)) return now;
  return {now.batch, target};
}

std::int64_t batch_step_up(const DualOptimizerOptions& o, std::int64_t batch, double usage) {
  const double room = o.target_vram_usage - usage;
  if (!(room > o.batch_up_min_room)) return 0;
  const double unit = o.batch_up_unit_from == BatchUnit::constant
                          ? o.batch_up_unit
                          : o.sample_headroom * usage / static_cast<double>(batch);
  return std::min(o.batch_up_at_most, std::max(o.batch_up_at_least, whole(room / unit, o.batch_up_at_most)));
}

BatchAndLq grown_batch(const DualOptimizerOptions& o, const PairBounds& bounds,
                       const std::vector<BatchAndLq>& failing, BatchAndLq now, double usage) {
  const std::int64_t target = std::min(now.batch + batch_step_up(o, now.batch, usage), bounds.high.batch);
  if (target <= now.batch) return now;
  for (const BatchAndLq& pair : failing) {
    if (o.avoid_failing && pair.lq <= now.lq && target >= pair.batch) return now;
  }
  return {target, now.lq};
}

BatchAndLq shrunk(const DualOptimizerOptions& o, const PairBounds& bounds, BatchAndLq now, double usage) {
  if (now.batch > bounds.low.batch) {
    const bool far = usage > o.target_vram_usage + o.batch_far;
    return {std::max(bounds.low.batch, now.batch - (far ? o.batch_down_far : o.batch_down)), now.lq};
  }
  if (now.lq > bounds.low.lq) {
    const bool far = usage > o.target_vram_usage + o.lq_far;
    const std::int64_t target = now.lq - (far ? o.lq_down_far : o.lq_down);
    return {now.batch, std::max(bounds.low.lq, cut_to(std::max<std::int64_t>(target, 0), o.lq_granularity))};
  }
  return now;
}

struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

Range common_range(const Parameter& parameter, Range options, std::int64_t unit, const char* low_key,
                   const char* high_key) {
  const Range range{round_up_to(std::max({options.low, parameter.low, std::int64_t{1}}), unit),
                    cut_to(std::min(options.high, parameter.high), unit)};
  if (range.low <= range.high) return range;
  throw InputError(low_key, "no " + parameter.name + " is left: the workload allows " +
                                std::to_string(parameter.low) + " to " + std::to_string(parameter.high) +
                                ", the options " + std::to_string(options.low) + " to " +
                                std::to_string(options.high) +
                                (unit == 1 ? "" : " in multiples of " + std::to_string(unit)) + ". Set " +
                                low_key + " and " + high_key + ".");
}

}  // namespace

PairView::PairView(const DualOptimizerOptions& options, const ParameterSpace& space)
    : batch_(space.find("batch")), lq_(space.find("lq")) {
  if (!batch_ && !lq_) {
    throw InputError("", "the policy dual-optimizer moves batch and lq; this workload has neither.");
  }
  if (batch_) {
    const Range range =
        common_range(space.parameters[*batch_], {options.min_batch_size, options.max_batch_size}, 1,
                     "min_batch_size", "max_batch_size");
    bounds_.low.batch = range.low;
    bounds_.high.batch = range.high;
  }
  if (lq_) {
    const Range range = common_range(space.parameters[*lq_], {options.min_lq_size, options.max_lq_size},
                                     options.lq_granularity, "min_lq_size", "max_lq_size");
    bounds_.low.lq = range.low;
    bounds_.high.lq = range.high;
  }
}

BatchAndLq PairView::of(const Point& point) const {
  return {batch_ ? point[*batch_] : 0, lq_ ? point[*lq_] : 0};
}

Point PairView::delta(const Point& point, BatchAndLq target) const {
  const BatchAndLq now = of(point);
  if (now == target) return {};
  Point change(point.size(), 0);
  if (batch_) change[*batch_] = target.batch - now.batch;
  if (lq_) change[*lq_] = target.lq - now.lq;
  return change;
}

Wish wish_for(const DualOptimizerOptions& options, double usage) {
  const double room = options.target_vram_usage - usage;
  if (options.hold_band && std::abs(room) < options.safety_margin) return Wish::hold;
  if (usage < options.target_vram_usage - options.safety_margin) return Wish::grow;
  if (usage > options.target_vram_usage + options.safety_margin) return Wish::shrink;
  return Wish::hold;
}

BatchAndLq next_pair(const DualOptimizerOptions& options, const PairBounds& bounds,
                     const std::vector<BatchAndLq>& failing, BatchAndLq now, double usage) {
  switch (wish_for(options, usage)) {
    case Wish::grow:
      return now.lq < bounds.high.lq ? grown_lq(options, bounds, failing, now, usage)
                                     : grown_batch(options, bounds, failing, now, usage);
    case Wish::shrink:
      return shrunk(options, bounds, now, usage);
    case Wish::hold:
      break;
  }
  return now;
}

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
