#include "policies/dual_optimizer.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "policies/builtins.hpp"
#include "policies/dual_optimizer_log.hpp"
#include "policies/figures.hpp"

namespace vramlab {

DualOptimizer::DualOptimizer(const DualOptimizerOptions& options, const ParameterSpace& space)
    : options_(options), view_(options, space) {}

TunerAnswer DualOptimizer::decide(const TunerQuestion& question, const Observation& observation) {
  TunerAnswer answer;
  current_ = believed(question.point);
  if (!options_.enabled) return answer;
  observe(question, observation, answer);
  if (question.result == StepResult::oom) {
    recover(question, answer);
    return answer;
  }
  failures_at_floor_ = 0;
  read_usage(observation.memory);
  if (snap(question, answer)) return answer;
  if (cooldown_ > 0) {
    --cooldown_;
    return answer;
  }
  const bool warming_up = options_.warm_up && observation.iteration < options_.adjustment_frequency;
  if (!warming_up) evaluate(question, observation, answer);
  return answer;
}

void DualOptimizer::observe(const TunerQuestion& question, const Observation& observation,
                            TunerAnswer& answer) {
  const MemoryView& memory = observation.memory;
  current_usage_ = share_of_total(memory.allocated, memory);
  if (current_usage_ > options_.warning_usage) answer.log.push_back(warning_line(options_, memory));
  if (!options_.log_lines) return;
  if (!std::exchange(started_, true)) {
    answer.log.push_back(start_line(options_, memory));
    if (options_.warm_up) answer.log.push_back(warm_up_line(options_));
  }
  if (question.result == StepResult::ok && observation.iteration % options_.log_interval == 0) {
    answer.log.push_back(usage_line(options_, memory));
  }
}

void DualOptimizer::read_usage(const MemoryView& memory) {
  const bool from_peak = options_.usage_source == UsageSource::peak;
  const double usage = share_of_total(from_peak ? memory.peak_allocated : memory.allocated, memory);
  period_peak_ = from_peak ? std::max(period_peak_, usage) : usage;
  peak_usage_ = std::max(peak_usage_, usage);
  history_.push_back(usage);
  if (std::cmp_greater(history_.size(), options_.vram_history_size)) history_.pop_front();
}

// A start value that the network cannot take would otherwise stay until the first look.
bool DualOptimizer::snap(const TunerQuestion& question, TunerAnswer& answer) {
  const BatchAndLq now = believed(question.point);
  if (now.lq % options_.lq_granularity == 0 || adjustments_used_up()) return false;
  const PairBounds& bounds = view_.bounds();
  const std::int64_t lq = std::clamp(cut_to(now.lq, options_.lq_granularity), bounds.low.lq, bounds.high.lq);
  if (lq > now.lq && cooldown_ > 0) return false;  // nothing grows after an OOM, for whatever reason

  const BatchAndLq target{now.batch, lq};
  answer.delta = view_.delta(question.point, target);
  answer.reason = snap_reason(options_, now, target);
  ++adjustments_;
  current_ = target;
  tracked_.reset();
  return true;
}

void DualOptimizer::evaluate(const TunerQuestion& question, const Observation& observation,
                             TunerAnswer& answer) {
  const BatchAndLq now = believed(question.point);
  const Wish wish = wish_for(options_, period_peak_);
  if (wish != Wish::shrink) memory_.note_safe(now);

  const bool used_up = adjustments_used_up();
  const BatchAndLq target =
      used_up ? now : next_pair(options_, view_.bounds(), memory_.failing(), now, period_peak_);
  const bool changed = target != now;
  answer.reason = used_up && wish != Wish::hold ? used_up_reason(options_, period_peak_)
                                                : decision_reason(options_, wish, period_peak_, now, target);
  if (options_.log_lines) {
    answer.log.push_back(decision_line(period_peak_, now, target, answer.reason));
    if (changed) answer.log.push_back(period_line(options_, observation.iteration));
  }
  if (changed) {
    answer.delta = view_.delta(question.point, target);
    memory_.note_change(now, target);
    ++adjustments_;
    current_ = target;
    tracked_.reset();
  }
  end_period(changed, observation.memory, answer);
}

void DualOptimizer::end_period(bool changed, const MemoryView& memory, TunerAnswer& answer) {
  if (!changed && options_.cooldown_after == CooldownAfter::change) return;
  cooldown_ = options_.adjustment_frequency;
  if (options_.peak_after_period == PeakAfterPeriod::reset) {
    period_peak_ = 0;
    answer.reset_peak = true;
  } else if (changed) {
    period_peak_ = share_of_total(memory.peak_allocated, memory);
  }
}

void DualOptimizer::recover(const TunerQuestion& question, TunerAnswer& answer) {
  const BatchAndLq now = view_.of(question.point);
  memory_.note_failing(now);
  const Recovery way = memory_.recover(options_, view_.bounds(), now);
  if (ends_here(now, way, answer)) return;

  ++recoveries_;
  failures_at_floor_ = way.target == now ? failures_at_floor_ + 1 : 0;
  cooldown_ = options_.oom_cooldown_periods * options_.adjustment_frequency;
  answer.empty_cache = options_.oom_empties_cache;
  if (options_.peak_after_period == PeakAfterPeriod::reset) {
    period_peak_ = 0;
    answer.reset_peak = true;
  }
  answer.retry = options_.retry_batch;
  answer.reason = recovery_reason(now, way, cooldown_);
  if (options_.log_lines) answer.log.push_back(answer.reason);
  if (way.target != now) {
    answer.delta = view_.delta(question.point, way.target);
    memory_.note_change(now, way.target);
    ++adjustments_;
  }
  current_ = way.tracked;
  tracked_.reset();
  if (way.tracked != way.target) tracked_ = way.tracked;
}

bool DualOptimizer::ends_here(BatchAndLq now, const Recovery& way, TunerAnswer& answer) const {
  if (options_.oom_ends_run) {
    answer.reason = first_failure_reason(now);
  } else if (options_.max_adjustments_counts == AdjustmentCount::recoveries &&
             recoveries_ >= options_.max_adjustments) {
    answer.reason = recoveries_used_up_reason(options_, now);
  } else if (way.target == now && failures_at_floor_ + 1 >= options_.oom_floor_limit) {
    answer.reason = floor_reason(options_, now);
  } else {
    return false;
  }
  answer.end_run = true;
  return true;
}

bool DualOptimizer::adjustments_used_up() const {
  return options_.max_adjustments_counts == AdjustmentCount::all && adjustments_ >= options_.max_adjustments;
}

BatchAndLq DualOptimizer::believed(const Point& point) const {
  return tracked_ ? *tracked_ : view_.of(point);
}

std::vector<Statistic> DualOptimizer::statistics() const {
  const double sum = std::accumulate(history_.begin(), history_.end(), 0.0);
  const double average = history_.empty() ? 0 : sum / static_cast<double>(history_.size());
  return {{"peak_usage", peak_usage_},
          {"avg_usage", average},
          {"current_usage", current_usage_},
          {"target_usage", options_.target_vram_usage},
          {"safety_margin", options_.safety_margin},
          {"current_batch_size", static_cast<double>(current_.batch)},
          {"current_lq_size", static_cast<double>(current_.lq)},
          {"oom_recovery_count", static_cast<double>(recoveries_)},
          {"adjustments", static_cast<double>(adjustments_)}};
}

namespace {

std::unique_ptr<Tuner> make(const OptionMap& options, const ParameterSpace& space) {
  return std::make_unique<DualOptimizer>(parse_dual_optimizer(options), space);
}

}  // namespace

TunerEntry dual_optimizer_entry() {
  return {.name = "dual-optimizer",
          .summary = "moves lq and batch toward a target usage; three published versions as profiles",
          .options = dual_optimizer_table().describe(),
          .profiles = dual_optimizer_profiles(),
          .default_profile = "settled",
          .make = make};
}

}  // namespace vramlab
