// `dual-optimizer`: moves batch and lq toward a target usage of memory. Its published versions are profiles.
#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "policies/contract/policy_set.hpp"
#include "policies/tuners/dual_optimizer_moves.hpp"

namespace vramlab {
namespace {

std::string usage_text(Bytes part, const MemoryView& memory) {
  return fixed_point(share_of_total(part, memory), 3) + " (" + format_bytes(part) + ")";
}

std::string usage_text(double value) { return fixed_point(value, 3); }

std::string pair_text(BatchAndLq pair) {
  return "(" + std::to_string(pair.batch) + ", " + std::to_string(pair.lq) + ")";
}

std::string change_text(BatchAndLq from, BatchAndLq to) {
  return "batch " + signed_number(to.batch - from.batch) + ", lq " + signed_number(to.lq - from.lq);
}

/// The tuner. Needs `memory.allocated`, `peak_allocated` and `total`; with `peak_after_period: keep` the
/// device's peak counter must have been reset once, at the start of the run, and never again by others.
class DualOptimizer final : public Tuner {
 public:
  /// Throws InputError if `space` has neither "batch" nor "lq", or no value within the options' bounds.
  DualOptimizer(const DualOptimizerOptions& options, const ParameterSpace& space)
      : options_(options), view_(options, space) {}

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    TunerAnswer answer;
    current_ = believed(question.point);
    if (!options_.enabled) return answer;
    observe(question, observation, answer);
    if (question.result == StepResult::oom) {
      recover(question, answer);
      return answer;
    }
    failures_at_floor_ = 0;
    ++good_steps_;
    read_usage(observation.memory);
    if (snap(question, answer)) return answer;
    if (cooldown_ > 0) {
      --cooldown_;
      return answer;
    }
    if (go_back(question, answer)) return answer;
    const bool warming_up = options_.warm_up && observation.iteration < options_.adjustment_frequency;
    if (!warming_up) evaluate(question, observation, answer);
    return answer;
  }

  /// With `phase_room` alone. Once a phase has failed the device's counter is reset after it: its peak is not
  /// taken for training's any more.
  TunerAnswer note_phase(const PhaseReport& phase, const Observation& observation) override {
    TunerAnswer answer;
    if (!options_.enabled || !options_.phase_room) return answer;
    PhaseNeed& need = phases_[phase.name];
    if (phase.begins) {
      answer.empty_cache = need.has_failed;
      return answer;
    }
    const BatchAndLq now = believed(phase.point);
    if (phase.result == StepResult::ok) {
      need.succeeded = now;
      need.usage = share_of_total(phase.peak_allocated, observation.memory);
    }
    if (phase.result == StepResult::oom) make_room(phase, now, need, answer);
    if (!need.has_failed) return answer;
    answer.empty_cache = true;
    answer.reset_peak = options_.peak_after_period == PeakAfterPeriod::reset;
    return answer;
  }

  /// peak_usage (highest usage read in the run), avg_usage (mean of the last `vram_history_size`),
  /// current_usage (allocated after the last step), target_usage, safety_margin (ratios of the total),
  /// current_batch_size, current_lq_size (as the tuner believes; 0 for a parameter the workload lacks),
  /// oom_recovery_count, adjustments (changes asked for, those after an OOM included).
  [[nodiscard]] std::vector<Statistic> statistics() const override {
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

 private:
  void observe(const TunerQuestion& question, const Observation& observation, TunerAnswer& answer) {
    const MemoryView& memory = observation.memory;
    current_usage_ = share_of_total(memory.allocated, memory);
    if (current_usage_ > options_.warning_usage) {
      answer.log.push_back("warning: " + usage_text(memory.allocated, memory) +
                           " is allocated after a step, above " + usage_text(options_.warning_usage));
    }
    if (!options_.log_lines) return;
    const std::string period = std::to_string(options_.adjustment_frequency);
    if (!std::exchange(started_, true)) {
      answer.log.push_back("monitoring started: initial peak " + usage_text(memory.peak_allocated, memory) +
                           ", a look every " + period + " iterations");
      if (options_.warm_up) {
        answer.log.push_back("initialisation phase: no adjustments before iteration " + period);
      }
    }
    if (question.result == StepResult::ok && observation.iteration % options_.log_interval == 0) {
      const double target = options_.target_vram_usage * static_cast<double>(memory.total);
      answer.log.push_back("usage now " + usage_text(memory.allocated, memory) + ", peak " +
                           usage_text(memory.peak_allocated, memory) + ", target " +
                           usage_text(options_.target_vram_usage) + " (" +
                           format_bytes(static_cast<Bytes>(target)) + ")");
    }
  }

  void read_usage(const MemoryView& memory) {
    const Bytes used = reads_peak() ? memory.peak_allocated : memory.allocated;
    const double usage = share_of_total(used, memory);
    last_usage_ = usage;
    period_peak_ = reads_peak() ? std::max(period_peak_, usage) : usage;
    peak_usage_ = std::max(peak_usage_, usage);
    history_.push_back(usage);
    if (std::cmp_greater(history_.size(), options_.vram_history_size)) history_.pop_front();
  }

  // A start value that the network cannot take would otherwise stay until the first look.
  bool snap(const TunerQuestion& question, TunerAnswer& answer) {
    const BatchAndLq now = believed(question.point);
    if (now.lq % options_.lq_granularity == 0 || adjustments_used_up()) return false;
    const PairBounds& bounds = view_.bounds();
    const std::int64_t lq =
        std::clamp(cut_to(now.lq, options_.lq_granularity), bounds.low.lq, bounds.high.lq);
    if (lq > now.lq && cooldown_ > 0) return false;  // nothing grows after an OOM, for whatever reason

    const BatchAndLq target{now.batch, lq};
    answer.reason = "lq " + std::to_string(now.lq) + " is not a multiple of " +
                    std::to_string(options_.lq_granularity) + ": " + change_text(now, target);
    move(question.point, target, answer);
    return true;
  }

  // Goes to `target`, which is what the tuner believes from now on.
  void move(const Point& point, BatchAndLq target, TunerAnswer& answer) {
    answer.delta = view_.delta(point, target);
    good_steps_ = 0;
    ++adjustments_;
    current_ = target;
    tracked_.reset();
  }

  void evaluate(const TunerQuestion& question, const Observation& observation, TunerAnswer& answer) {
    const BatchAndLq now = believed(question.point);
    const Wish wish = wish_for(options_, period_peak_);
    if (wish != Wish::shrink) memory_.note_safe(now);

    BatchAndLq target = now;
    if (!adjustments_used_up()) {
      target = next_pair(options_, view_.bounds(), memory_.failing(), now, period_peak_);
    }
    if (wish == Wish::grow && !phases_have_room(target)) target = now;
    const bool changed = target != now;
    answer.reason = (reads_peak() ? "peak usage " : "usage ") + usage_text(period_peak_) +
                    outcome_text(wish, now, target);
    if (options_.log_lines) {
      answer.log.push_back("decision at " + usage_text(period_peak_) + ": " + change_text(now, target) +
                           ", because " + answer.reason);
    }
    if (options_.log_lines && changed) {
      answer.log.push_back("period complete at iteration " + std::to_string(observation.iteration) +
                           "; the next look is " + std::to_string(options_.adjustment_frequency + 1) +
                           " iterations away");
    }
    if (changed) {
      move(question.point, target, answer);
      memory_.note_change(now, target);
    }
    end_period(changed, observation.memory, answer);
  }

  // What follows from the usage: ` is below 0.800: batch +2, lq +0`.
  [[nodiscard]] std::string outcome_text(Wish wish, BatchAndLq from, BatchAndLq to) const {
    const std::string low = usage_text(options_.target_vram_usage - options_.safety_margin);
    const std::string high = usage_text(options_.target_vram_usage + options_.safety_margin);
    if (wish == Wish::hold) return " lies within " + low + " to " + high + ": no change";
    if (adjustments_used_up()) {
      return ": no change, all " + std::to_string(options_.max_adjustments) + " adjustments are used up";
    }
    const bool grows = wish == Wish::grow;
    const std::string text = grows ? " is below " + low + ": " : " is above " + high + ": ";
    if (from != to) return text + change_text(from, to);
    return text + (grows ? "no step fits, no change" : "both are at their minimum, no change");
  }

  void end_period(bool changed, const MemoryView& memory, TunerAnswer& answer) {
    if (!changed && options_.cooldown_after == CooldownAfter::change) return;
    cooldown_ = options_.adjustment_frequency;
    if (!reset_peak(answer) && changed) period_peak_ = share_of_total(memory.peak_allocated, memory);
  }

  bool reset_peak(TunerAnswer& answer) {
    if (options_.peak_after_period != PeakAfterPeriod::reset) return false;
    period_peak_ = 0;
    answer.reset_peak = true;
    return true;
  }

  void recover(const TunerQuestion& question, TunerAnswer& answer) {
    const BatchAndLq now = view_.of(question.point);
    if (is_outlier(now)) {
      return_to_ = now;
    } else if (!return_to_) {  // what fails on the way there says nothing about its pair either
      memory_.note_failing(now);
    }
    const Recovery way = memory_.recover(options_, view_.bounds(), now);
    answer.reason = "oom at " + pair_text(now) + ": ";
    if (ends_here(now, way, answer)) return;

    ++recoveries_;
    failures_at_floor_ = way.target == now ? failures_at_floor_ + 1 : 0;
    cooldown_ = options_.oom_cooldown_periods * options_.adjustment_frequency;
    answer.empty_cache = options_.oom_empties_cache;
    reset_peak(answer);
    answer.retry = options_.retry_batch;
    answer.reason +=
        (way.target == now ? "nothing is left to shrink" : way.how + " gives " + pair_text(way.target)) +
        "; no look for " + std::to_string(cooldown_) + " iterations";
    if (options_.log_lines) answer.log.push_back(answer.reason);
    if (way.target != now) {
      move(question.point, way.target, answer);
      memory_.note_change(now, way.target);
    }
    current_ = way.tracked;
    tracked_.reset();
    if (way.tracked != way.target) tracked_ = way.tracked;
  }

  // Whether the step that failed at `now` was an outlier, by how long others ran well there.
  bool is_outlier(BatchAndLq now) {
    if (tried_ != now) {
      tried_ = now;
      tried_well_ = 0;
      tried_failures_ = 0;
    }
    tried_well_ += std::exchange(good_steps_, 0);
    ++tried_failures_;
    const std::int64_t periods = options_.return_after_periods;
    const bool is_outlier =
        periods > 0 && tried_well_ >= periods * options_.adjustment_frequency * tried_failures_;
    if (!is_outlier && return_to_ == now) return_to_.reset();
    return is_outlier;
  }

  // When the cooldown after an outlier is over.
  bool go_back(const TunerQuestion& question, TunerAnswer& answer) {
    if (!return_to_ || adjustments_used_up()) return false;
    const BatchAndLq now = believed(question.point);
    const BatchAndLq target = *std::exchange(return_to_, std::nullopt);
    if (target == now) return false;
    answer.reason = "back to " + pair_text(target) + ", where " + std::to_string(tried_well_) +
                    " steps ran well and " + std::to_string(tried_failures_) +
                    " failed: " + change_text(now, target);
    move(question.point, target, answer);
    memory_.note_change(now, target);
    cooldown_ = options_.adjustment_frequency;
    reset_peak(answer);
    return true;
  }

  /// What is known of a phase. Its need follows the area of a batch where its parameters follow training's.
  struct PhaseNeed {
    bool has_failed = false;
    bool follows = false;
    std::optional<BatchAndLq> succeeded;  ///< beside this pair, the last time …
    double usage = 0;                     ///< … with this peak
    std::int64_t tries = 0;
  };

  // A phase of its own size gets an emptied cache first, and then up to three smaller steps of training.
  void make_room(const PhaseReport& phase, BatchAndLq now, PhaseNeed& need, TunerAnswer& answer) {
    constexpr std::int64_t kMostTries = 3;
    const bool was_emptied = std::exchange(need.has_failed, true);
    const BatchAndLq ran = view_.of(phase.ran);
    need.follows = !phase.follow.empty();
    answer.reason = "oom at " + pair_text(ran) + " beside training at " + pair_text(now) + ": ";
    const double usage = need.succeeded ? need.usage * area_of(now) / area_of(*need.succeeded)
                                        : last_usage_ * area_of(ran) / area_of(now);
    const bool should_fit = !need.follows || (usage > 0 && usage <= options_.target_vram_usage);
    BatchAndLq target = now;
    if (was_emptied || !should_fit) {
      if (need.follows) memory_.note_failing(now);
      target = need.follows && usage > options_.target_vram_usage
                   ? cut_to_usage(options_, view_.bounds(), now, usage)
               : need.follows || ++need.tries <= kMostTries
                   ? memory_.recover(options_, view_.bounds(), now).target
                   : now;
    }
    answer.reason += target == now ? "the cache is emptied before it from now on"
                                   : "to " + pair_text(target) + ", to make room for it";
    if (options_.log_lines) answer.log.push_back(answer.reason);
    if (target == now) return;
    move(phase.point, target, answer);
    memory_.note_change(now, target);
    cooldown_ = options_.adjustment_frequency;
    period_peak_ = 0;
  }

  [[nodiscard]] bool phases_have_room(BatchAndLq target) const {
    return std::all_of(phases_.begin(), phases_.end(), [&](const auto& phase) {
      const PhaseNeed& need = phase.second;
      if (!need.has_failed || !need.follows) return true;
      if (!need.succeeded) return false;
      const double usage = need.usage * area_of(target) / area_of(*need.succeeded);
      return usage <= options_.target_vram_usage + options_.safety_margin;
    });
  }

  bool ends_here(BatchAndLq now, const Recovery& way, TunerAnswer& answer) const {
    if (options_.oom_ends_run) {
      answer.reason += "the run ends with its first OOM (oom_ends_run)";
    } else if (options_.max_adjustments_counts == AdjustmentCount::recoveries &&
               recoveries_ >= options_.max_adjustments) {
      answer.reason += "the run ends, all " + std::to_string(options_.max_adjustments) +
                       " recoveries are used up (max_adjustments)";
    } else if (way.target == now && failures_at_floor_ + 1 >= options_.oom_floor_limit) {
      answer.reason += "the run ends, nothing is left to shrink and " +
                       std::to_string(options_.oom_floor_limit) +
                       " steps in a row have failed (oom_floor_limit)";
    } else {
      return false;
    }
    answer.end_run = true;
    return true;
  }

  [[nodiscard]] bool reads_peak() const { return options_.usage_source == UsageSource::peak; }

  [[nodiscard]] bool adjustments_used_up() const {
    return options_.max_adjustments_counts == AdjustmentCount::all &&
           adjustments_ >= options_.max_adjustments;
  }

  [[nodiscard]] BatchAndLq believed(const Point& point) const { return tracked_.value_or(view_.of(point)); }

  DualOptimizerOptions options_;
  PairView view_;
  PairMemory memory_;
  std::optional<BatchAndLq> tracked_;  ///< set while belief and run differ (oom_double_halving)
  BatchAndLq current_;                 ///< for statistics
  std::int64_t cooldown_ = 0;          ///< steps until the next look
  double period_peak_ = 0;
  double last_usage_ = 0;  ///< as last read
  double peak_usage_ = 0;
  double current_usage_ = 0;
  std::deque<double> history_;
  std::int64_t adjustments_ = 0;
  std::int64_t recoveries_ = 0;
  std::int64_t failures_at_floor_ = 0;
  std::map<std::string, PhaseNeed> phases_;  ///< by name
  std::optional<BatchAndLq> return_to_;      ///< once the cooldown is over
  std::optional<BatchAndLq> tried_;          ///< where a step failed last …
  std::int64_t tried_well_ = 0;              ///< … with so many steps that ran well there
  std::int64_t tried_failures_ = 0;
  std::int64_t good_steps_ = 0;  ///< in a row since the last change or failure
  bool started_ = false;
};

std::unique_ptr<Tuner> make_dual_optimizer(const OptionMap& options, const ParameterSpace& space) {
  return std::make_unique<DualOptimizer>(parse_dual_optimizer(options), space);
}

}  // namespace

TunerEntry dual_optimizer_entry() {
  return {.name = "dual-optimizer",
          .summary = "moves lq and batch toward a target usage; three published versions as profiles",
          .options = dual_optimizer_table().describe(),
          .profiles = dual_optimizer_profiles(),
          .default_profile = "settled",
          .make = make_dual_optimizer};
}

}  // namespace vramlab
