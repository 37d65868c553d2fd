// `dual-optimizer`: moves batch and lq toward a target usage of memory. Its published versions are profiles.
#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

#include "policies/contract/policy_set.hpp"
#include "policies/tuners/dual_optimizer_moves.hpp"

namespace vramlab {
namespace {

// The sentences: reasons of decisions, and lines for the run's log.

std::string usage_text(Bytes part, const MemoryView& memory) {
  return fixed_point(share_of_total(part, memory), 3) + " (" + format_bytes(part) + ")";
}

std::string ratio(double value) { return fixed_point(value, 3); }

std::string pair_text(BatchAndLq pair) {
  return "(" + std::to_string(pair.batch) + ", " + std::to_string(pair.lq) + ")";
}

std::string change_text(BatchAndLq from, BatchAndLq to) {
  return "batch " + signed_number(to.batch - from.batch) + ", lq " + signed_number(to.lq - from.lq);
}

const char* read_from(const DualOptimizerOptions& o) {
  return o.usage_source == UsageSource::peak ? "peak usage " : "usage ";
}

std::string start_line(const DualOptimizerOptions& o, const MemoryView& memory) {
  return "monitoring started: initial peak " + usage_text(memory.peak_allocated, memory) + ", a look every " +
         std::to_string(o.adjustment_frequency) + " iterations";
}

std::string warm_up_line(const DualOptimizerOptions& o) {
  return "initialisation phase: no adjustments before iteration " + std::to_string(o.adjustment_frequency);
}

std::string usage_line(const DualOptimizerOptions& o, const MemoryView& memory) {
  const double target = o.target_vram_usage * static_cast<double>(memory.total);
  return "usage now " + usage_text(memory.allocated, memory) + ", peak " +
         usage_text(memory.peak_allocated, memory) + ", target " + ratio(o.target_vram_usage) + " (" +
         format_bytes(static_cast<Bytes>(target)) + ")";
}

std::string warning_line(const DualOptimizerOptions& o, const MemoryView& memory) {
  return "warning: " + usage_text(memory.allocated, memory) + " is allocated after a step, above " +
         ratio(o.warning_usage);
}

std::string decision_line(double usage, BatchAndLq from, BatchAndLq to, const std::string& reason) {
  return "decision at " + ratio(usage) + ": " + change_text(from, to) + ", because " + reason;
}

std::string period_line(const DualOptimizerOptions& o, std::int64_t iteration) {
  return "period complete at iteration " + std::to_string(iteration) + "; the next look is " +
         std::to_string(o.adjustment_frequency + 1) + " iterations away";
}

std::string decision_reason(const DualOptimizerOptions& o, Wish wish, double usage, BatchAndLq from,
                            BatchAndLq to) {
  const double low = o.target_vram_usage - o.safety_margin;
  const double high = o.target_vram_usage + o.safety_margin;
  const std::string read = read_from(o) + ratio(usage);
  const std::string change = from == to ? "no change" : change_text(from, to);
  if (wish == Wish::grow) {
    return read + " is below " + ratio(low) + ": " + (from == to ? "no step fits, " : "") + change;
  }
  if (wish == Wish::shrink) {
    return read + " is above " + ratio(high) + ": " + (from == to ? "both are at their minimum, " : "") +
           change;
  }
  return read + " lies within " + ratio(low) + " to " + ratio(high) + ": no change";
}

std::string used_up_reason(const DualOptimizerOptions& o, double usage) {
  return read_from(o) + ratio(usage) + ": no change, all " + std::to_string(o.max_adjustments) +
         " adjustments are used up";
}

std::string snap_reason(const DualOptimizerOptions& o, BatchAndLq from, BatchAndLq to) {
  return "lq " + std::to_string(from.lq) + " is not a multiple of " + std::to_string(o.lq_granularity) +
         ": " + change_text(from, to);
}

// From here on sentences begin with "oom".

std::string recovery_reason(BatchAndLq from, const Recovery& way, std::int64_t cooldown) {
  if (from == way.target) {
    return "oom at " + pair_text(from) + ": nothing is left to shrink; no look for " +
           std::to_string(cooldown) + " iterations";
  }
  return "oom at " + pair_text(from) + ": " + way.how + " gives " + pair_text(way.target) + "; no look for " +
         std::to_string(cooldown) + " iterations";
}

std::string first_failure_reason(BatchAndLq pair) {
  return "oom at " + pair_text(pair) + ": the run ends with its first OOM (oom_ends_run)";
}

std::string recoveries_used_up_reason(const DualOptimizerOptions& o, BatchAndLq pair) {
  return "oom at " + pair_text(pair) + ": the run ends, all " + std::to_string(o.max_adjustments) +
         " recoveries are used up (max_adjustments)";
}

std::string floor_reason(const DualOptimizerOptions& o, BatchAndLq pair) {
  return "oom at " + pair_text(pair) + ": the run ends, nothing is left to shrink and " +
         std::to_string(o.oom_floor_limit) + " steps in a row have failed (oom_floor_limit)";
}

/// The tuner. Needs `memory.allocated`, `peak_allocated` and `total`; with `peak_after_period: keep` the
/// device's peak counter must have been reset once, at the start of the run, and never again by others.
class DualOptimizer final : public Tuner {
 public:
  /// Throws InputError if `space` has neither "batch" nor "lq", or no value within the options' bounds.
  DualOptimizer(const DualOptimizerOptions& options, const ParameterSpace& space);

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override;

  /// peak_usage (highest usage read in the run), avg_usage (mean of the last `vram_history_size`),
  /// current_usage (allocated after the last step), target_usage, safety_margin (ratios of the total),
  /// current_batch_size, current_lq_size (as the tuner believes; 0 for a parameter the workload lacks),
  /// oom_recovery_count, adjustments (changes asked for, those after an OOM included).
  [[nodiscard]] std::vector<Statistic> statistics() const override;

 private:
  void observe(const TunerQuestion& question, const Observation& observation, TunerAnswer& answer);
  void read_usage(const MemoryView& memory);
  void recover(const TunerQuestion& question, TunerAnswer& answer);
  void evaluate(const TunerQuestion& question, const Observation& observation, TunerAnswer& answer);
  void end_period(bool changed, const MemoryView& memory, TunerAnswer& answer);
  bool snap(const TunerQuestion& question, TunerAnswer& answer);
  bool ends_here(BatchAndLq now, const Recovery& way, TunerAnswer& answer) const;
  [[nodiscard]] bool adjustments_used_up() const;
  [[nodiscard]] BatchAndLq believed(const Point& point) const;

  DualOptimizerOptions options_;
  PairView view_;
  PairMemory memory_;
  std::optional<BatchAndLq> tracked_;  ///< set while belief and run differ (oom_double_halving)
  BatchAndLq current_;                 ///< for statistics
  std::int64_t cooldown_ = 0;          ///< steps until the next look
  double period_peak_ = 0;
  double peak_usage_ = 0;
  double current_usage_ = 0;
  std::deque<double> history_;
  std::int64_t adjustments_ = 0;
  std::int64_t recoveries_ = 0;
  std::int64_t failures_at_floor_ = 0;
  bool started_ = false;
};

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
