#include "lab/metric.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr Better kMore = Better::more;
constexpr Better kLess = Better::less;
constexpr Better kNeither = Better::neither;

// "total" is the limit where the scenario sets one, else the card's memory; sums run over steps.
MetricFamily training_family() {
  return {
      "training",
      {{"iterations", "steps", "count", kNeither, "steps performed, failed ones and repetitions included",
        ""},
       {"ooms", "OOMs", "count", kLess, "steps that ran out of memory, phases included", ""},
       {"allocator_ooms", "allocator OOMs", "count", kLess,
        "allocations the allocator refused; higher than `ooms` where a library asks again or does without a "
        "workspace",
        ""},
       {"alloc_retries", "retries", "count", kLess, "allocations that first had to release the whole cache",
        ""},
       {"peak_allocated_ratio", "peak", "share", kNeither, "highest allocated bytes of the run",
        "max allocated / total"},
       {"peak_reserved_ratio", "peak reserved", "share", kNeither,
        "highest reserved bytes of the run: what the card really had to give", "max reserved / total"},
       {"mean_peak_ratio", "mean peak", "share", kNeither,
        "mean over the steps of each step's own peak of allocated bytes",
        "Σ step_peak_allocated / total / iterations"},
       {"min_headroom_bytes", "headroom", "bytes", kNeither,
        "what was left at the highest share reserved; negative where a limit was exceeded by page rounding",
        "total − max reserved"},
       {"adjustments", "changes", "count", kNeither, "changes of parameters, those after an OOM included",
        ""},
       {"direction_changes", "turns", "count", kLess,
        "times a parameter turned round: its move had the opposite sign of its move before", ""},
       {"last_adjustment_iteration", "last change", "count", kNeither,
        "iteration of the last change; 0 if there was none", ""},
       {"evaluations_to_settle", "evaluations", "count", kLess,
        "times the policy evaluated something (it gave a reason) up to and with its last change", ""},
       {"samples_per_s", "samples/s", "1/s", kMore,
        "samples of successful steps per second of simulated time", "Σ batch / duration"},
       {"pixels_per_s", "pixels/s", "1/s", kMore, "input pixels of successful steps per second",
        "Σ batch · lq² / duration"},
       {"oom_time_share", "time in OOMs", "share", kLess, "share of the time spent in steps that failed",
        "Σ duration of failed steps / duration"},
       {"errors", "errors", "count", kLess, "steps that ended in a CUDA error that is not OOM", ""},
       {"heavy_steps", "heavy steps", "count", kNeither,
        "steps that needed more once: an outlier sample, a search at new parameters", ""},
       {"heavy_ooms", "heavy OOMs", "count", kLess, "those of them that ran out of memory", ""},
       {"late_changes", "late steps", "count", kNeither,
        "steps that ran at parameters no longer wanted, from batches fetched before a change", ""},
       {"missing_readings", "old readings", "count", kNeither,
        "steps after which the policy saw an older reading of memory, because the new one was late or "
        "missing",
        ""},
       {"leaked_bytes", "leaked", "bytes", kNeither, "bytes lost to a leak, of the process that ran last",
        ""},
       {"lost_iterations", "lost", "count", kLess, "iterations whose work was lost in a restart", ""},
       {"phase_ooms", "phase OOMs", "count", kLess,
        "phases (validation) that ran out of memory; `ooms` contains them", ""},
       {"phase_time_share", "time in phases", "share", kNeither, "share of the time spent in phases",
        "Σ duration of phases / duration"},
       {"objective", "objective", "score", kMore,
        "work done by the scenario's `objective`: `lq-then-batch` sums pixels, steps lost in a restart left "
        "out; the others are the rates above times the share of the planned iterations that was begun",
        "Σ batch · lq², or rate · begun / planned"},
       {"disturbance_cost", "fault cost", "share", kLess,
        "how far the policy stays behind itself in the same run without faults, phases and other processes; "
        "only where a scenario has any",
        "(objective without − objective) / objective without"},
       {"regret", "regret", "share", kLess,
        "how far the policy stays behind the oracle; negative where it did more than any fixed choice that "
        "stays within target plus margin",
        "(objective of the oracle − objective) / objective of the oracle"}}};
}

// Over all jobs but those refused, unless said otherwise.
MetricFamily jobs_family() {
  return {
      "jobs",
      {{"jobs", "jobs", "count", kNeither, "jobs of the scenario", ""},
       {"completed", "done", "count", kMore, "jobs that ran to their end", ""},
       {"makespan_s", "makespan", "s", kLess, "from the first arrival until the last job left", ""},
       {"mean_wait_s", "mean wait", "s", kLess,
        "mean time spent waiting in all, after an OOM too; for a job that never starts until the end",
        "Σ waited / jobs"},
       {"p50_wait_s", "p50 wait", "s", kLess, "the wait that half of the jobs stay within", ""},
       {"p99_wait_s", "p99 wait", "s", kLess, "the wait that 99 % of the jobs stay within", ""},
       {"mean_completion_s", "mean done in", "s", kLess, "mean time from arrival to end, of completed jobs",
        "Σ (end − arrival) / completed"},
       {"p99_completion_s", "p99 done in", "s", kLess, "the same time that 99 % of them stay within", ""},
       {"mean_slow_down", "slow-down", "score", kLess, "mean of that time over the job's own duration",
        "Σ ((end − arrival) / duration) / completed"},
       {"timeouts", "timeouts", "count", kLess, "jobs that waited or took too long", ""},
       {"refused", "refused", "count", kNeither, "jobs turned away at submit because they can never fit", ""},
       {"failed", "failed", "count", kLess, "jobs given up after an OOM, or whose owner died", ""},
       {"oom_kills", "OOM kills", "count", kLess, "attempts killed for lack of memory", ""},
       {"gpu_hours_wasted", "GPU h wasted", "h", kLess, "running time of those attempts, times their cards",
        "Σ wasted / 3600"},
       {"memory_utilisation", "memory used", "share", kMore,
        "bytes in use times time, over all cards and the makespan", "∫ used dt / (capacity · makespan)"},
       {"fairness", "fairness", "score", kMore,
        "Jain's index of x = duration over time in the system, 0 for a job that did not complete; none if "
        "none did",
        "(Σ x)² / (n · Σ x²)"},
       {"overcommits", "over-commits", "count", kLess,
        "admissions that left a card with more promised and held by strangers than it has", ""},
       {"alerts", "alerts", "count", kLess,
        "times a card became more than 90 % full; the alert ends below 85 %", ""},
       {"most_active_jobs", "most active", "count", kNeither, "most jobs that held a promise at any moment",
        ""},
       {"most_pending_jobs", "most pending", "count", kNeither, "most jobs that waited at any moment", ""},
       {"most_promised_bytes", "most promised", "bytes", kNeither,
        "highest sum of promises over all cards at any moment", ""}}};
}

// A batch is one forward and backward pass; "taken" is its peak less what was allocated before.
MetricFamily epoch_family() {
  return {
      "epoch",
      {{"batches", "batches", "count", kNeither, "batches that did not fail", ""},
       {"samples", "samples", "count", kNeither, "samples trained on, over all epochs", ""},
       {"untrained_samples", "left out", "count", kLess,
        "samples that were left out after an OOM, or never reached",
        "samples of the data · epochs − samples"},
       {"ooms", "OOMs", "count", kLess, "batches that ran out of memory", ""},
       {"first_oom", "first OOM", "count", kNeither, "number of the first of them, 0 if there was none", ""},
       {"alloc_retries", "retries", "count", kLess, "allocations that first had to release the whole cache",
        ""},
       {"oversize_batches", "oversize", "count", kNeither,
        "single samples that alone were predicted over budget and ran alone", ""},
       {"optimizer_steps", "steps", "count", kNeither,
        "effective batches, the smaller one at the end of an epoch included", ""},
       {"smallest_step", "smallest step", "count", kNeither,
        "samples of the smallest effective batch; the last of an epoch is not counted", ""},
       {"largest_step", "largest step", "count", kNeither,
        "samples of the largest effective batch; the last of an epoch is not counted", ""},
       {"duration_s", "duration", "s", kLess, "simulated time", ""},
       {"samples_per_s", "samples/s", "1/s", kMore, "samples trained on per second of simulated time",
        "samples / duration"},
       {"tokens_per_s", "tokens/s", "1/s", kMore, "tokens of those samples, without padding, per second",
        "Σ tokens / duration"},
       {"oom_time_share", "time in OOMs", "share", kLess, "share of the time spent in batches that failed",
        "Σ duration of failed batches / duration"},
       {"budget_use", "budget used", "share", kMore,
        "mean over the batches of the peak of allocated bytes as a share of total",
        "Σ peak allocated / total / batches"},
       {"peak_allocated_ratio", "peak", "share", kNeither, "highest allocated bytes of the run",
        "max allocated / total"},
       {"peak_reserved_ratio", "peak reserved", "share", kNeither, "highest reserved bytes of the run",
        "max reserved / total"},
       {"padding_share", "padding", "share", kLess, "share of all positions of all batches that is padding",
        "1 − Σ tokens / Σ positions"},
       {"predictor_error", "error", "share", kLess,
        "mean size of the predictor's error; none where nothing is predicted",
        "Σ |predicted − taken| / taken / batches"},
       {"predictor_bias", "bias", "share", kNeither, "the same with its sign: above 0 too much was predicted",
        "Σ (predicted − taken) / taken / batches"},
       {"predictor_unsafe_share", "unsafe", "share", kLess,
        "share of the batches that took more than the prediction held against the budget", ""},
       {"task_share", "task shift", "share", kLess,
        "largest difference, over the tasks, between a task's share of the gradient weight and of the data",
        "max |gradient share − data share|"}}};
}

// With buckets, answers are those of the last bucket and costs are sums over all.
MetricFamily search_family() {
  return {
      "search",
      {{"found", "found", "count", kMore, "1 if every bucket has an answer", ""},
       {"batch", "batch", "count", kNeither, "the batch that was answered; 0 if none", ""},
       {"edge_batch", "edge", "count", kNeither,
        "the largest batch that runs three steps in every phase without a failure, found by bisection", ""},
       {"edge_share", "of the edge", "share", kNeither, "the answer over that; above 1 it does not fit",
        "batch / edge_batch"},
       {"probes", "probes", "count", kLess, "sizes tried", ""},
       {"probe_s", "probing", "s", kLess, "simulated time that took, clean-up included", ""},
       {"probe_ooms", "probe OOMs", "count", kLess, "probes that ran out of memory", ""},
       {"extrapolated", "untried", "count", kLess, "answers that no good probe has shown to fit", ""},
       {"headroom_bytes", "headroom", "bytes", kNeither,
        "what three steps at the answer leave free on the fullest card; 0 where it does not fit",
        "total − max allocated"},
       {"epoch_iterations", "epoch steps", "count", kNeither, "steps of the epoch after it", ""},
       {"epoch_ooms", "epoch OOMs", "count", kLess, "those that ran out of memory", ""},
       {"epoch_retries", "epoch retries", "count", kLess,
        "allocations of the epoch that first had to release the cache", ""},
       {"epoch_survived", "survived", "count", kMore, "1 if there was an epoch and none of its steps failed",
        ""},
       {"epoch_peak_ratio", "epoch peak", "share", kNeither,
        "highest allocated bytes of the epoch, on the fullest card", "max allocated / total"},
       {"epoch_reserved_ratio", "epoch reserved", "share", kNeither,
        "highest reserved bytes of the epoch, on the fullest card", "max reserved / total"},
       {"epoch_samples_per_s", "epoch samples/s", "1/s", kMore,
        "samples of the steps that did not fail, per second", "Σ batch / duration"}}};
}

// A row is the recorded program on one card under one setting. Behind the row's figures are those that only
// a mark has.
MetricFamily snapshot_family() {
  return {"snapshot",
          {{"context_bytes", "context", "bytes", kNeither, "what the CUDA context takes of the card", ""},
           {"context_assumed", "context assumed", "count", kNeither, "1 if nobody measured that on this card",
            ""},
           {"usable_bytes", "usable", "bytes", kNeither,
            "what the card has for the program; a limit may lie below",
            "capacity_bytes − context_bytes − what others hold"},
           {"fits", "fits", "count", kMore, "1 if no allocation that succeeded in the recording fails", ""},
           {"ooms", "OOMs", "count", kLess,
            "allocations of the program that failed; at a mark what `allocator_ooms` was there", ""},
           {"allocator_ooms", "allocator OOMs", "count", kLess, "allocations the allocator refused", ""},
           {"retries", "retries", "count", kLess,
            "allocations that first had to release the whole cache; at a mark, until then", ""},
           {"unreplayed_attempts", "not replayed", "count", kNeither,
            "allocations that failed in the recording; they are not replayed", ""},
           {"attempts_that_would_succeed", "would succeed", "count", kMore,
            "those of them that would succeed here", ""},
           {"peak_allocated_bytes", "peak allocated", "bytes", kLess,
            "highest allocated bytes since the program's last reset of its peaks; at a mark, until then", ""},
           {"peak_reserved_bytes", "peak reserved", "bytes", kLess,
            "highest reserved bytes since the last reset; at a mark, until then", ""},
           {"peak_requested_bytes", "peak requested", "bytes", kNeither,
            "highest sum of sizes as requested, before rounding, since the last reset; at a mark, until then",
            ""},
           {"highest_allocated_bytes", "highest allocated", "bytes", kLess,
            "highest allocated bytes of the whole program, resets or not", ""},
           {"highest_reserved_bytes", "highest reserved", "bytes", kLess,
            "highest reserved bytes of the whole program, resets or not", ""},
           {"end_allocated_bytes", "allocated at end", "bytes", kNeither, "allocated bytes at the end", ""},
           {"end_reserved_bytes", "reserved at end", "bytes", kLess, "reserved bytes at the end", ""},
           {"segments", "segments", "count", kNeither, "segments held at the end; at a mark, there", ""},
           {"device_allocs", "device allocs", "count", kLess,
            "times the driver gave a segment, or mapped pages into one; at a mark, until then", ""},
           {"device_frees", "device frees", "count", kLess,
            "times the driver took a segment back, or unmapped pages of one; at a mark, until then", ""},
           {"driver_time_s", "driver time", "s", kLess, "estimated time of all calls of the driver", ""},
           {"fragmentation", "idle at peak", "share", kLess,
            "share of the reserved bytes that was not in use when their peak was first reached",
            "1 − active / reserved"},
           {"smallest_usable_bytes", "smallest usable", "bytes", kLess,
            "the smallest `usable_bytes`, or limit where there is one, with which the program fits; none "
            "where it was not looked for",
            ""},
           {"smallest_without_retry_bytes", "smallest without retry", "bytes", kLess,
            "the smallest with which it fits and nothing has to release the cache", ""},
           {"device", "device", "count", kNeither, "number of the recorded card", ""},
           {"allocated_bytes", "allocated", "bytes", kNeither, "at a mark: allocated bytes there", ""},
           {"reserved_bytes", "reserved", "bytes", kNeither, "at a mark: reserved bytes there", ""},
           {"requested_bytes", "requested", "bytes", kNeither,
            "at a mark: sum of the sizes as requested of what is allocated there", ""},
           {"active_bytes", "active", "bytes", kNeither,
            "at a mark: allocated bytes there, and those freed that another stream still uses", ""},
           {"inactive_split_bytes", "inactive split", "bytes", kLess,
            "at a mark: free bytes there in segments of which a part is in use", ""}}};
}

}  // namespace

const std::vector<MetricFamily>& metric_families() {
  static const std::vector<MetricFamily> families{training_family(), jobs_family(), epoch_family(),
                                                  search_family(), snapshot_family()};
  return families;
}

const std::vector<MetricDescription>& metrics_of(std::string_view kind) {
  const auto found = std::find_if(metric_families().begin(), metric_families().end(),
                                  [&](const MetricFamily& family) { return family.kind == kind; });
  if (found == metric_families().end()) throw InternalError("no metrics of kind " + std::string{kind});
  return found->metrics;
}

std::string_view better_name(Better better) {
  switch (better) {
    case Better::more:
      return "more";
    case Better::less:
      return "less";
    case Better::neither:
      break;
  }
  return "";
}

namespace {

/// Sums over the steps of a run.
struct Totals {
  double samples = 0;
  double pixels = 0;
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
      totals.samples += static_cast<double>(scenario.model->samples(step.point));
      totals.pixels += static_cast<double>(scenario.model->pixels(step.point));
    }
  }
  return totals;
}

// A policy that gives a reason has evaluated something.
std::int64_t evaluations_until(const std::vector<IterationRecord>& steps, std::int64_t iteration) {
  return std::count_if(steps.begin(), steps.end(), [&](const IterationRecord& step) {
    return step.iteration <= iteration && !step.reason.empty();
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

}  // namespace

std::vector<Metric> training_metrics(const TrainingScenario& scenario, const TrainingRun& run) {
  const Totals totals = add_up(scenario, run);
  const auto steps = static_cast<double>(run.iterations.size());
  const double seconds = to_seconds(run.duration);
  const auto per_second = [&](double amount) { return seconds > 0 ? amount / seconds : 0; };
  // A rate says nothing about work that was never begun: a run that ended early keeps the share it did.
  const double begun = run.iterations.empty() ? 1
                                              : static_cast<double>(run.iterations.back().iteration) /
                                                    static_cast<double>(scenario.setup.iterations);
  const double done = scenario.objective == Objective::lq_then_batch ? 1 : begun;
  const auto last_adjustment = run.adjustments.empty() ? 0 : run.adjustments.back().iteration;
  return {
      {"iterations", steps},
      {"ooms", static_cast<double>(totals.ooms + run.phases.ooms)},
      {"allocator_ooms", static_cast<double>(run.memory.num_ooms)},
      {"alloc_retries", static_cast<double>(run.memory.num_alloc_retries)},
      {"peak_allocated_ratio", share(run.peak_allocated.bytes, run.peak_allocated.total)},
      {"peak_reserved_ratio", share(run.peak_reserved.bytes, run.peak_reserved.total)},
      {"mean_peak_ratio", steps > 0 ? totals.peak_shares / steps : 0},
      {"min_headroom_bytes",
       static_cast<double>(run.peak_reserved.total) - static_cast<double>(run.peak_reserved.bytes)},
      {"adjustments", static_cast<double>(run.adjustments.size())},
      {"direction_changes", static_cast<double>(direction_changes(run.adjustments))},
      {"last_adjustment_iteration", static_cast<double>(last_adjustment)},
      {"evaluations_to_settle", static_cast<double>(evaluations_until(run.iterations, last_adjustment))},
      {"samples_per_s", per_second(totals.samples)},
      {"pixels_per_s", per_second(totals.pixels)},
      {"oom_time_share", seconds > 0 ? totals.failed_s / seconds : 0},
      {"errors", static_cast<double>(totals.errors)},
      {"heavy_steps", static_cast<double>(run.faults.heavy_steps)},
      {"heavy_ooms", static_cast<double>(run.faults.heavy_ooms)},
      {"late_changes", static_cast<double>(run.faults.late_changes)},
      {"missing_readings", static_cast<double>(run.faults.missing_readings)},
      {"leaked_bytes", static_cast<double>(run.faults.leaked)},
      {"lost_iterations", static_cast<double>(totals.lost)},
      {"phase_ooms", static_cast<double>(run.phases.ooms)},
      {"phase_time_share", seconds > 0 ? to_seconds(run.phases.time) / seconds : 0},
      {"objective", done * objective_of(scenario.objective, totals.samples, totals.pixels, seconds)},
  };
}

std::optional<double> find_metric(const std::vector<Metric>& metrics, std::string_view name) {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
  return found == metrics.end() ? std::nullopt : std::optional{found->value};
}

std::vector<std::string> training_metric_names() {
  std::vector<std::string> names;
  const TrainingScenario nothing;  // a temporary here makes g++ 12 warn wrongly about uninitialised members
  for (const Metric& metric : training_metrics(nothing, {})) names.push_back(metric.name);
  names.emplace_back("disturbance_cost");
  names.emplace_back("regret");
  return names;
}

double objective_of(Objective objective, double samples, double pixels, double seconds) {
  switch (objective) {
    case Objective::lq_then_batch:
      return pixels;
    case Objective::pixels_per_s:
      return seconds > 0 ? pixels / seconds : 0;
    case Objective::samples_per_s:
      return seconds > 0 ? samples / seconds : 0;
  }
  return 0;
}

bool within_target(const Target& target, Bytes peak, Bytes total) {
  constexpr double kSlack = 1e-12;  // target and margin are decimals; their sum is one only nearly
  return static_cast<double>(peak) <= (target.usage + target.margin + kSlack) * static_cast<double>(total);
}

}  // namespace vramlab
