#include <algorithm>
#include <cmath>

#include "lab/kinds/training/run.hpp"

namespace vramlab {
namespace {

using enum Better;

/// Sums over the steps of a run.
struct Totals {
  WorkDone work;
  double failed_s = 0;
  double peak_shares = 0;
  std::int64_t ooms = 0;
  std::int64_t errors = 0;
  std::int64_t lost = 0;
};

double share(Bytes part, Bytes total) {
  return total == 0 ? 0 : static_cast<double>(part) / static_cast<double>(total);
}

Totals add_up(const TrainingScenario& scenario, const TrainingRun& run) {
  Totals totals;
  for (const IterationRecord& step : run.iterations) {
    totals.peak_shares += share(step.step_peak_allocated, step.memory.total);
    if (!step.kept) ++totals.lost;
    if (step.result == StepResult::error) ++totals.errors;
    if (step.result == StepResult::oom) {
      ++totals.ooms;
      totals.failed_s += to_seconds(step.duration);
    } else if (step.result == StepResult::ok && step.kept) {
      totals.work.samples += static_cast<double>(scenario.model->samples(step.point()));
      totals.work.pixels += static_cast<double>(scenario.model->pixels(step.point()));
      totals.work.ranks += rank_of(scenario.setup.bounds, step.point()) /
                           static_cast<double>(std::max<std::int64_t>(1, scenario.setup.iterations));
    }
  }
  return totals;
}

// A policy that gives a reason has evaluated something.
std::int64_t evaluations_until(const std::vector<IterationRecord>& steps, std::int64_t iteration) {
  return std::count_if(steps.begin(), steps.end(), [&](const IterationRecord& step) {
    return step.iteration <= iteration && !step.reason().empty();
  });
}

// How often a parameter turned round: it moved one way and then, at its next move, the other.
std::int64_t direction_changes(const std::vector<Adjustment>& adjustments) {
  std::int64_t changes = 0;
  std::vector<std::int64_t> last;
  for (const Adjustment& adjustment : adjustments) {
    last.resize(adjustment.to.size());
    for (std::size_t i = 0; i < last.size(); ++i) {
      const std::int64_t step = adjustment.to[i] - adjustment.from[i];
      if (step == 0) continue;
      if (last[i] != 0 && (last[i] > 0) != (step > 0)) ++changes;
      last[i] = step;
    }
  }
  return changes;
}

/// What the rows are computed from.
struct Facts {
  const TrainingScenario& scenario;
  const TrainingRun& run;
  const Rivals& rivals;
  const BatchSearchRun* search = nullptr;
  Totals totals = add_up(scenario, run);
  double steps = static_cast<double>(run.iterations.size());
  bool timed = has_times(scenario);
  double seconds = timed ? to_seconds(run.duration) : std::nan("");  // without times the driver's calls alone

  [[nodiscard]] bool finished() const { return run.ended_early.empty() && totals.work.samples > 0; }
  [[nodiscard]] double per_second(double amount) const { return seconds > 0 ? amount / seconds : none(); }
  [[nodiscard]] double share_of_time(double part) const { return seconds > 0 ? part / seconds : none(); }
  [[nodiscard]] double none() const { return timed ? 0 : std::nan(""); }
  [[nodiscard]] double mean_peak() const { return steps > 0 ? totals.peak_shares / steps : 0; }
  [[nodiscard]] std::int64_t last_change() const {
    return run.adjustments.empty() ? 0 : run.adjustments.back().iteration;
  }
  template <class Figure>
  [[nodiscard]] std::optional<double> of_search(const Figure& figure) const {
    return search == nullptr ? std::nullopt : std::optional{static_cast<double>(figure(*search))};
  }
  // When a policy should have settled.
  [[nodiscard]] bool stays_inside() const {
    const auto quarter = static_cast<std::ptrdiff_t>((run.iterations.size() + 3) / 4);
    return std::all_of(run.iterations.end() - quarter, run.iterations.end(),
                       [&](const IterationRecord& step) {
                         return within_target(scenario.target, step.step_peak_allocated, step.memory.total);
                       });
  }
  // A rate says nothing about work that was never begun: a run that ended early keeps the share it did.
  [[nodiscard]] double objective() const {
    const double begun = run.iterations.empty() ? 1
                                                : static_cast<double>(run.iterations.back().iteration) /
                                                      static_cast<double>(scenario.setup.iterations);
    const double done = counts_time(scenario.objective) ? begun : 1;
    if (ranks_by_memory(scenario)) return done * mean_peak();
    return done * objective_of(scenario.objective, totals.work, seconds);
  }
};

std::optional<double> share_lost(const Facts& facts, const std::optional<double>& rival) {
  if (!rival) return std::nullopt;
  return *rival > 0 ? (*rival - facts.objective()) / *rival : 0;
}

std::optional<double> as_number(const std::optional<bool>& flag) {
  return flag ? std::optional{*flag ? 1.0 : 0.0} : std::nullopt;
}

// "total" is the limit where the scenario sets one, else the card's memory; sums run over steps.
const std::vector<MetricRow<Facts>>& rows() {
  static const std::vector<MetricRow<Facts>> rows{
      {{"iterations", "steps", "count", neither, "steps performed, failed ones and repetitions included"},
       [](const Facts& f) { return f.steps; }},
      {{"finished",
        "finished",
        "count",
        more,
        "1 if the run came to its end and some step trained; only such a policy can be best",
        {},
        kTruth},
       [](const Facts& f) { return f.finished() ? 1.0 : 0.0; }},
      {{"ooms", "OOMs", "count", less, "steps that ran out of memory, phases included"},
       [](const Facts& f) { return f.totals.ooms + f.run.phases.ooms; }},
      {{"allocator_ooms", "allocator OOMs", "count", less,
        "allocations the allocator refused; higher than `ooms` where a library asks again or does without a "
        "workspace"},
       [](const Facts& f) { return f.run.memory.num_ooms; }},
      {{"alloc_retries", "retries", "count", less, "allocations that first had to release the whole cache"},
       [](const Facts& f) { return f.run.memory.num_alloc_retries; }},
      {{"peak_allocated_ratio", "peak", "share", neither, "highest allocated bytes of the run",
        "max allocated / total"},
       [](const Facts& f) { return share(f.run.peak_allocated.bytes, f.run.peak_allocated.total); }},
      {{"peak_reserved_ratio", "peak reserved", "share", neither,
        "highest reserved bytes of the run: what the card really had to give", "max reserved / total",
        kReservedShare},
       [](const Facts& f) { return share(f.run.peak_reserved.bytes, f.run.peak_reserved.total); }},
      {{"mean_peak_ratio", "mean peak", "share", neither,
        "mean over the steps of each step's own peak of allocated bytes",
        "Σ step_peak_allocated / total / iterations"},
       [](const Facts& f) { return f.mean_peak(); }},
      {{"inside_target",
        "inside",
        "count",
        more,
        "1 if no step in the last quarter of the run allocated more than target plus margin",
        {},
        kTruth},
       [](const Facts& f) { return f.stays_inside() ? 1.0 : 0.0; }},
      {{"min_headroom_bytes", "headroom", "bytes", neither,
        "what was left at the highest share reserved; negative where a limit was exceeded by page rounding",
        "total − max reserved", ValueRange{}},
       [](const Facts& f) {
         return static_cast<double>(f.run.peak_reserved.total) -
                static_cast<double>(f.run.peak_reserved.bytes);
       }},
      {{"adjustments", "changes", "count", neither, "changes of parameters, those after an OOM included"},
       [](const Facts& f) { return f.run.adjustments.size(); }},
      {{"direction_changes", "turns", "count", less,
        "times a parameter turned round: its move had the opposite sign of its move before"},
       [](const Facts& f) { return direction_changes(f.run.adjustments); }},
      {{"last_adjustment_iteration", "last change", "count", neither,
        "iteration of the last change; 0 if there was none"},
       [](const Facts& f) { return f.last_change(); }},
      {{"evaluations_to_settle", "evaluations", "count", less,
        "times the policy evaluated something (it gave a reason) up to and with its last change"},
       [](const Facts& f) { return evaluations_until(f.run.iterations, f.last_change()); }},
      {{"samples_per_s", "samples/s", "1/s", more, "samples of successful steps per second of simulated time",
        "Σ batch / duration"},
       [](const Facts& f) { return f.per_second(f.totals.work.samples); }},
      {{"pixels_per_s", "pixels/s", "1/s", more, "input pixels of successful steps per second",
        "Σ batch · lq² / duration"},
       [](const Facts& f) { return f.per_second(f.totals.work.pixels); }},
      {{"oom_time_share", "time in OOMs", "share", less, "share of the time spent in steps that failed",
        "Σ duration of failed steps / duration"},
       [](const Facts& f) { return f.share_of_time(f.totals.failed_s); }},
      {{"errors", "errors", "count", less, "steps that ended in a CUDA error that is not OOM"},
       [](const Facts& f) { return f.totals.errors; }},
      {{"heavy_steps", "heavy steps", "count", neither,
        "steps that needed more once: an outlier sample, a search at new parameters"},
       [](const Facts& f) { return f.run.faults.heavy_steps; }},
      {{"heavy_ooms", "heavy OOMs", "count", less, "those of them that ran out of memory"},
       [](const Facts& f) { return f.run.faults.heavy_ooms; }},
      {{"late_changes", "late steps", "count", neither,
        "steps that ran at parameters no longer wanted, from batches fetched before a change"},
       [](const Facts& f) { return f.run.faults.late_changes; }},
      {{"missing_readings", "old readings", "count", neither,
        "steps after which the policy saw an older reading of memory, because the new one was late or "
        "missing"},
       [](const Facts& f) { return f.run.faults.missing_readings; }},
      {{"leaked_bytes", "leaked", "bytes", neither, "bytes lost to a leak, of the process that ran last"},
       [](const Facts& f) { return f.run.faults.leaked; }},
      {{"lost_iterations", "lost", "count", less, "iterations whose work was lost in a restart"},
       [](const Facts& f) { return f.totals.lost; }},
      {{"phase_ooms", "phase OOMs", "count", less,
        "phases (validation) that ran out of memory; `ooms` contains them"},
       [](const Facts& f) { return f.run.phases.ooms; }},
      {{"phase_time_share", "time in phases", "share", neither, "share of the time spent in phases",
        "Σ duration of phases / duration"},
       [](const Facts& f) { return f.share_of_time(to_seconds(f.run.phases.time)); }},
      {{"search_probes", "probes", "count", less,
        "sizes that a search tried before the run; only where one came before it"},
       [](const Facts& f) { return f.of_search([](const auto& s) { return std::ssize(s.trials); }); }},
      {{"search_ooms", "search OOMs", "count", less,
        "probes of it that ran out of memory; `ooms` does not contain them"},
       [](const Facts& f) { return f.of_search([](const auto& s) { return s.ooms; }); }},
      {{"search_s", "search", "s", less,
        "simulated time it took, which is part of the run's and of all rates"},
       [](const Facts& f) {
         return f.of_search([&](const auto& s) { return f.timed ? to_seconds(s.duration) : std::nan(""); });
       }},
      {{"objective", "objective", "score", more,
        "work done by the scenario's `objective`: `pixels` sums them, steps lost in a restart left out; "
        "`lq-first` is the mean size of the planned steps, the batch as a fraction behind it; the others are "
        "the rates above times the share of the planned iterations that was begun, or, where the model has "
        "no step times, the mean peak times that share",
        "Σ batch · lq², Σ (lq + batch / (batch + 1)) / planned, or rate · begun / planned"},
       [](const Facts& f) { return f.objective(); }},
      {{"disturbance_cost", "fault cost", "share", less,
        "how far the policy stays behind itself in the same run without faults, phases and other processes; "
        "only where a scenario has any",
        "(objective without − objective) / objective without", ValueRange{.high = 1}},
       [](const Facts& f) { return share_lost(f, f.rivals.undisturbed); }},
      {{"regret", "regret", "share", less,
        "how far the policy stays behind the oracle; negative where it did more than any fixed choice that "
        "stays within target plus margin",
        "(objective of the oracle − objective) / objective of the oracle", ValueRange{.high = 1}},
       [](const Facts& f) { return share_lost(f, f.rivals.oracle); }},
      {{"on_front",
        "front",
        "count",
        neither,
        "1 if the run had no failed step and did not end early, and no other such run is at least as good in "
        "final size, final batch, samples/s and headroom and better in one of them; else 0",
        {},
        kTruth},
       [](const Facts& f) { return as_number(f.rivals.on_front); }},
  };
  return rows;
}

}  // namespace

std::vector<Metric> training_metrics(const TrainingScenario& scenario, const TrainingRun& run,
                                     const Rivals& rivals, const BatchSearchRun* search) {
  return measure(rows(), Facts{.scenario = scenario, .run = run, .rivals = rivals, .search = search});
}

const MetricTable& training_metric_table() {
  static const MetricTable table = table_of(rows());
  return table;
}

bool has_times(const TrainingScenario& scenario) {
  return scenario.setup.make_performer != nullptr || scenario.model->timed();
}

bool counts_time(Objective objective) {
  return objective == Objective::pixels_per_s || objective == Objective::samples_per_s;
}

bool ranks_by_memory(const TrainingScenario& scenario) {
  return counts_time(scenario.objective) && !has_times(scenario);
}

double rank_of(const ParameterSpace& space, const Point& point) {
  const std::size_t batch = space.find("batch").value_or(0);
  std::optional<std::size_t> size = space.find("lq");
  for (std::size_t i = 0; i < space.size() && !size; ++i) {
    if (i != batch) size = i;
  }
  const auto samples = static_cast<double>(std::max<std::int64_t>(0, point[batch]));
  return (size ? static_cast<double>(point[*size]) : 0) + samples / (samples + 1);
}

double objective_of(Objective objective, const WorkDone& work, double seconds) {
  if (objective == Objective::lq_first) return work.ranks;
  const bool counts_pixels = objective != Objective::samples_per_s;
  const double done = counts_pixels ? work.pixels : work.samples;
  if (objective == Objective::pixels || objective == Objective::lq_then_batch) return done;
  return seconds > 0 ? done / seconds : 0;
}

bool within_target(const Target& target, Bytes peak, Bytes total) {
  constexpr double kSlack = 1e-12;  // target and margin are decimals; their sum is one only nearly
  return static_cast<double>(peak) <= (target.usage + target.margin + kSlack) * static_cast<double>(total);
}

}  // namespace vramlab
