#include "lab/metric_table.hpp"

#include <algorithm>

#include "sim/core/error.hpp"

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
        "what was left at the highest reserved bytes; negative where a limit was exceeded by page rounding",
        "total − max reserved"},
       {"adjustments", "changes", "count", kNeither, "changes of parameters, those after an OOM included",
        ""},
       {"direction_changes", "turns", "count", kLess,
        "times a parameter turned round: its move had the opposite sign of its move before", ""},
       {"last_adjustment_iteration", "last change", "count", kNeither,
        "iteration of the last change; 0 if there was none", ""},
       {"samples_per_s", "samples/s", "1/s", kMore,
        "samples of successful steps per second of simulated time", "Σ batch / duration"},
       {"pixels_per_s", "pixels/s", "1/s", kMore, "input pixels of successful steps per second",
        "Σ batch · lq² / duration"},
       {"oom_time_share", "time in OOMs", "share", kLess, "share of the time spent in steps that failed",
        "Σ duration of failed steps / duration"},
       {"objective", "objective", "score", kMore,
        "work done by the scenario's `objective`: `lq-then-batch` sums pixels, the others are the rates "
        "above "
        "times the share of the planned iterations that was begun",
        "Σ batch · lq², or rate · begun / planned"},
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
       {"mean_wait_s", "mean wait", "s", kLess, "mean time spent waiting in all, after an OOM too",
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
        "Jain's index of x = duration over time in the system, 0 for a job that did not complete",
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

}  // namespace

const std::vector<MetricFamily>& metric_families() {
  static const std::vector<MetricFamily> families{training_family(), jobs_family()};
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

}  // namespace vramlab
