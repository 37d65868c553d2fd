#include "policies/tuners/dual_optimizer_moves.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace vramlab {
namespace {

// int() of the published formulas, which cuts toward zero; capped first, because a quotient may be infinite.
std::int64_t whole(double quotient, std::int64_t most) {
  if (!(quotient < static_cast<double>(most))) return most;
  return static_cast<std::int64_t>(quotient);
}

std::int64_t round_up_to(std::int64_t value, std::int64_t unit) { return cut_to(value + unit - 1, unit); }

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

BatchAndLq grown_lq(const DualOptimizerOptions& o, const PairBounds& bounds,
                    const std::vector<BatchAndLq>& failing, BatchAndLq now, double usage) {
  const double room = o.target_vram_usage - usage;
  if (!(room > o.lq_up_min_room)) return now;
  const std::int64_t units = whole(room / o.lq_up_unit, o.lq_up_at_most);
  const std::int64_t step = std::min(o.lq_up_at_most, std::max(o.lq_up_at_least, o.lq_up_factor * units));
  if (step == 0) return now;
  const std::int64_t wanted = round_up_to(now.lq + step, o.lq_granularity);
  const std::int64_t target = std::min(wanted, highest_lq(o, bounds, failing, now));
  if (target <= now.lq) return now;
  // The steps were made for single pixels; one blown up to 32 may cost far more than the room it was made
  // for.
  const double side = static_cast<double>(target) / static_cast<double>(now.lq);
  const bool area_fits = usage * side * side <= o.target_vram_usage;
  if (o.area_check && target - now.lq > step && !area_fits) return now;
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

// The values of `parameter` from the options' `low` to `high`, in multiples of `unit`: the first and the
// last.
std::pair<std::int64_t, std::int64_t> common_range(const Parameter& parameter, std::int64_t low,
                                                   std::int64_t high, std::int64_t unit) {
  const std::pair range{round_up_to(std::max({low, parameter.low, std::int64_t{1}}), unit),
                        cut_to(std::min(high, parameter.high), unit)};
  if (range.first <= range.second) return range;
  const std::string low_key = "min_" + parameter.name + "_size";
  throw InputError(low_key, "no " + parameter.name + " is left: the workload allows " +
                                std::to_string(parameter.low) + " to " + std::to_string(parameter.high) +
                                ", the options " + std::to_string(low) + " to " + std::to_string(high) +
                                (unit == 1 ? "" : " in multiples of " + std::to_string(unit)) + ". Set " +
                                low_key + " and max_" + parameter.name + "_size.");
}

}  // namespace

PairView::PairView(const DualOptimizerOptions& options, const ParameterSpace& space)
    : batch_(space.find("batch")), lq_(space.find("lq")) {
  if (!batch_ && !lq_) {
    throw InputError("", "the policy dual-optimizer moves batch and lq; this workload has neither.");
  }
  if (batch_) {
    std::tie(bounds_.low.batch, bounds_.high.batch) =
        common_range(space.parameters[*batch_], options.min_batch_size, options.max_batch_size, 1);
  }
  if (lq_) {
    std::tie(bounds_.low.lq, bounds_.high.lq) = common_range(space.parameters[*lq_], options.min_lq_size,
                                                             options.max_lq_size, options.lq_granularity);
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
  const Wish wish = wish_for(options, usage);
  if (wish == Wish::hold) return now;
  if (wish == Wish::shrink) return shrunk(options, bounds, now, usage);
  return now.lq < bounds.high.lq ? grown_lq(options, bounds, failing, now, usage)
                                 : grown_batch(options, bounds, failing, now, usage);
}

double area_of(BatchAndLq pair) {
  const auto side = static_cast<double>(std::max<std::int64_t>(1, pair.lq));
  return static_cast<double>(std::max<std::int64_t>(1, pair.batch)) * side * side;
}

BatchAndLq cut_to_usage(const DualOptimizerOptions& o, const PairBounds& bounds, BatchAndLq now,
                        double usage) {
  const double share = std::min(1.0, o.target_vram_usage / usage);
  const auto cut = [](std::int64_t value, double factor, std::int64_t low) {
    return std::min(value, std::max(low, static_cast<std::int64_t>(static_cast<double>(value) * factor)));
  };
  BatchAndLq pair{cut(now.batch, share, bounds.low.batch), now.lq};
  const double left = share * area_of(now) / area_of(pair);
  if (left < 1) {
    const std::int64_t lq = cut(now.lq, std::sqrt(left), bounds.low.lq);
    pair.lq = std::min(now.lq, std::max(bounds.low.lq, cut_to(lq, o.lq_granularity)));
  }
  return pair;
}

namespace {

// A pair that already lies below its bounds must not grow because of a failure, hence the inner minimum.
std::int64_t scaled(std::int64_t value, double factor, std::int64_t unit, std::int64_t low) {
  const auto product = static_cast<std::int64_t>(static_cast<double>(value) * factor);
  return std::min(value, std::max(low, cut_to(product, unit)));
}

BatchAndLq scaled_pair(const DualOptimizerOptions& o, const PairBounds& bounds, BatchAndLq pair) {
  // With two units at once, the coarser network's multiple is the one that must hold.
  const std::int64_t lq = scaled(pair.lq, o.oom_factor, o.oom_lq_multiple, 0);
  return {scaled(pair.batch, o.oom_factor, 1, bounds.low.batch),
          std::min(pair.lq, std::max(bounds.low.lq, cut_to(lq, o.lq_granularity)))};
}

}  // namespace

void PairMemory::note_failing(BatchAndLq pair) {
  if (std::find(failing_.begin(), failing_.end(), pair) == failing_.end()) failing_.push_back(pair);
}

Recovery PairMemory::recover(const DualOptimizerOptions& options, const PairBounds& bounds,
                             BatchAndLq now) const {
  const BatchAndLq both = scaled_pair(options, bounds, now);
  const std::string times = " times " + format_option_value(options.oom_factor);
  const Recovery of_both{both, "batch and lq" + times, both};
  if (options.oom_rule == OomRule::scale) {
    if (!options.oom_double_halving) return of_both;
    return {both, of_both.how, scaled_pair(options, bounds, both)};
  }
  if (safe_ && safe_->batch <= now.batch && safe_->lq <= now.lq && *safe_ != now) {
    return {*safe_, "back to the last safe pair", *safe_};
  }
  // Where the parameter moved last is at its minimum already, only the other one can still help.
  const bool one_moved = batch_moved_ != lq_moved_;
  if (one_moved && batch_moved_ && both.batch < now.batch) {
    return {{both.batch, now.lq}, "batch, which moved last," + times, {both.batch, now.lq}};
  }
  if (one_moved && lq_moved_ && both.lq < now.lq) {
    return {{now.batch, both.lq}, "lq, which moved last," + times, {now.batch, both.lq}};
  }
  return of_both;
}

}  // namespace vramlab
