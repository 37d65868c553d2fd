#include <algorithm>
#include <cmath>
#include <functional>

#include "core/statistics.hpp"
#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {
namespace {

using enum Better;

// Jain's index of the progress of jobs: 1 if all got on equally well, 1/n if one had everything. Of no
// progress at all there is none.
double jain(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : std::nan("");
}

/// The figures of single jobs.
struct Spread {
  std::vector<double> waits;        ///< of all but those refused
  std::vector<double> completions;  ///< of completed jobs
  std::vector<double> progress;     ///< duration over time in the system; 0 for jobs that did not complete
  std::vector<double> slow_downs;   ///< of completed jobs, its inverse
};

Spread spread_of(const JobQueueSetup& setup, const JobQueueRun& run) {
  Spread spread;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    const JobRecord& job = run.jobs[i];
    if (job.outcome == JobOutcome::refused) {
      spread.progress.push_back(0);
      continue;
    }
    // Who still waits when nothing more happens has waited until then, at least.
    const bool waits = job.outcome == JobOutcome::pending;
    spread.waits.push_back(
        to_seconds(waits ? std::max(job.waited, run.end - setup.jobs[i].arrival) : job.waited));
    const double in_system = to_seconds(job.end - setup.jobs[i].arrival);
    const double alone = to_seconds(setup.jobs[i].duration() + setup.start_up);
    const bool done = job.outcome == JobOutcome::completed;
    spread.progress.push_back(done ? alone / in_system : 0);
    if (!done) continue;
    spread.completions.push_back(in_system);
    spread.slow_downs.push_back(in_system / alone);
  }
  std::sort(spread.waits.begin(), spread.waits.end());
  std::sort(spread.completions.begin(), spread.completions.end());
  return spread;
}

/// What the rows are computed from.
struct Facts {
  const JobQueueSetup& setup;
  const JobQueueRun& run;
  QueueRival rival;
  Spread spread = spread_of(setup, run);
  double makespan = to_seconds(run.end - run.begin);
  double whole = static_cast<double>(run.capacity) * makespan;

  [[nodiscard]] std::int64_t count(JobOutcome outcome) const {
    return std::ranges::count(run.jobs, outcome, &JobRecord::outcome);
  }
  template <class Value>
  [[nodiscard]] double sum(const Value& value) const {
    double sum = 0;
    for (const JobRecord& job : run.jobs) sum += value(job);
    return sum;
  }

  /// The sum over what tuners and composers did; NaN where no job has one.
  template <class Value>
  [[nodiscard]] double of_steered(const Value& value) const {
    if (!is_steered(setup)) return std::nan("");
    return sum(
        [&](const JobRecord& job) { return job.tuning ? static_cast<double>(value(*job.tuning)) : 0; });
  }
  [[nodiscard]] double samples() const { return of_steered(std::mem_fn(&JobTuning::samples)); }
  [[nodiscard]] double per_second(double amount) const {
    return makespan > 0 ? amount / makespan : std::nan("");
  }
  [[nodiscard]] double samples_per_s() const { return per_second(samples()); }
  [[nodiscard]] double pixels_per_s() const {
    return per_second(of_steered(std::mem_fn(&JobTuning::pixels)));
  }

  // Of a rate it is the share of the jobs that were completed; a mean of some jobs is comparable with none.
  [[nodiscard]] std::optional<double> regret() const {
    if (rival.oracle == nullptr) return std::nullopt;
    const Figures best{*rival.oracle};
    const auto completed = static_cast<double>(count(JobOutcome::completed));
    const auto jobs = static_cast<double>(run.jobs.size());
    if (rival.objective == QueueObjective::completion) {
      return completed == jobs ? mean_of(spread.completions) / best["mean_completion_s"] - 1 : std::nan("");
    }
    const bool pixels = rival.objective == QueueObjective::pixels_per_s;
    const double own = (pixels ? pixels_per_s() : samples_per_s()) * completed / jobs;
    return 1 - own / best[pixels ? "pixels_per_s" : "samples_per_s"];
  }
};

// A refused job never waited: times of waiting are without it.
const std::vector<MetricRow<Facts>>& rows() {
  static const std::vector<MetricRow<Facts>> rows{
      {{"jobs", "jobs", "count", neither, "jobs of the scenario"},
       [](const Facts& f) { return f.run.jobs.size(); }},
      {{"completed", "done", "count", more, "jobs that ran to their end"},
       [](const Facts& f) { return f.count(JobOutcome::completed); }},
      {{"finished",
        "finished",
        "count",
        more,
        "1 if every job ran to its end: none was refused, timed out, killed or still waits; only such a "
        "policy "
        "can be best",
        {},
        kTruth},
       [](const Facts& f) {
         return f.run.ended_early.empty() && f.count(JobOutcome::completed) == std::ssize(f.run.jobs) ? 1.0
                                                                                                      : 0.0;
       }},
      {{"makespan_s", "makespan", "s", less, "from the first arrival until the last job left"},
       [](const Facts& f) { return f.makespan; }},
      {{"mean_wait_s", "mean wait", "s", less,
        "mean time that jobs which were not refused spent waiting in all, after an OOM too; for one that "
        "never "
        "starts until the end",
        "Σ waited / (jobs − refused)"},
       [](const Facts& f) { return mean_of(f.spread.waits); }},
      {{"p50_wait_s", "p50 wait", "s", less,
        "the wait that half of the jobs that were not refused stay within"},
       [](const Facts& f) { return quantile_of(f.spread.waits, 0.5); }},
      {{"p99_wait_s", "p99 wait", "s", less, "the wait that 99 % of them stay within"},
       [](const Facts& f) { return quantile_of(f.spread.waits, 0.99); }},
      {{"mean_completion_s", "mean done in", "s", less, "mean time from arrival to end, of completed jobs",
        "Σ (end − arrival) / completed"},
       [](const Facts& f) { return mean_of(f.spread.completions); }},
      {{"p99_completion_s", "p99 done in", "s", less, "the same time that 99 % of them stay within"},
       [](const Facts& f) { return quantile_of(f.spread.completions, 0.99); }},
      {{"mean_slow_down", "slow-down", "score", less, "mean of that time over the job's own duration",
        "Σ ((end − arrival) / duration) / completed"},
       [](const Facts& f) { return mean_of(f.spread.slow_downs); }},
      {{"timeouts", "timeouts", "count", less, "jobs that waited or took too long"},
       [](const Facts& f) { return f.count(JobOutcome::wait_timeout) + f.count(JobOutcome::job_timeout); }},
      {{"refused", "refused", "count", neither, "jobs turned away at submit because they can never fit"},
       [](const Facts& f) { return f.count(JobOutcome::refused); }},
      {{"failed", "failed", "count", less,
        "jobs given up after an OOM, whose owner died, or whose tuner or composer could not go on"},
       [](const Facts& f) {
         return f.count(JobOutcome::out_of_memory) + f.count(JobOutcome::crashed) +
                f.count(JobOutcome::gave_up);
       }},
      {{"oom_kills", "OOM kills", "count", less, "attempts killed for lack of memory"},
       [](const Facts& f) { return f.sum([](const JobRecord& job) { return job.ooms; }); }},
      {{"gpu_hours_wasted", "GPU h wasted", "h", less, "running time of those attempts, times their cards",
        "Σ wasted / 3600"},
       [](const Facts& f) {
         return f.sum([](const JobRecord& job) { return to_seconds(job.wasted) / 3600; });
       }},
      {{"memory_utilisation", "memory used", "share", more,
        "bytes in use times time, over all cards and the makespan", "∫ used dt / (capacity · makespan)"},
       [](const Facts& f) { return f.whole > 0 ? f.run.byte_seconds / f.whole : 0; }},
      {{"fairness", "fairness", "score", more,
        "Jain's index of x = duration over time in the system, 0 for a job that did not complete, refused "
        "ones "
        "included; none if none did",
        "(Σ x)² / (jobs · Σ x²)", ValueRange{0, 1}},
       [](const Facts& f) { return jain(f.spread.progress); }},
      {{"overcommits", "over-commits", "count", less,
        "admissions that left a card with more promised and held by strangers than it has"},
       [](const Facts& f) { return f.run.overcommits; }},
      {{"overruns", "overruns", "count", less,
        "jobs that at some moment held more of a card than they were promised"},
       [](const Facts& f) { return std::ranges::count(f.run.jobs, true, &JobRecord::overran); }},
      {{"tuner_changes", "changes", "count", neither,
        "changes of parameters by the tuners of jobs, in all attempts; as the next rows none where no job "
        "has a tuner or a composer"},
       [](const Facts& f) { return f.of_steered(std::mem_fn(&JobTuning::changes)); }},
      {{"failed_steps", "failed steps", "count", less,
        "steps of such jobs that ran out of memory; unlike a kill such a step does not end the job"},
       [](const Facts& f) { return f.of_steered(std::mem_fn(&JobTuning::failed_steps)); }},
      {{"samples", "samples", "count", more,
        "samples that such jobs trained on, on each of their cards, in their last attempts"},
       [](const Facts& f) { return f.samples(); }},
      {{"samples_per_s", "samples / s", "1/s", more, "the same over the makespan", "samples / makespan"},
       [](const Facts& f) { return f.samples_per_s(); }},
      {{"pixels_per_s", "pixels / s", "1/s", more,
        "input pixels of these samples over the makespan; a sample of a composer counts as one; only where a "
        "job has a "
        "tuner or a composer"},
       [](const Facts& f) { return is_steered(f.setup) ? std::optional{f.pixels_per_s()} : std::nullopt; }},
      {{"alerts", "alerts", "count", less,
        "times a card became more than 90 % full; the alert ends below 85 %"},
       [](const Facts& f) { return f.run.alerts; }},
      {{"most_active_jobs", "most active", "count", neither, "most jobs that held a promise at any moment"},
       [](const Facts& f) { return f.run.most_active; }},
      {{"most_pending_jobs", "most pending", "count", neither, "most jobs that waited at any moment"},
       [](const Facts& f) { return f.run.most_pending; }},
      {{"most_promised_bytes", "most promised", "bytes", neither,
        "highest sum of promises over all cards at any moment"},
       [](const Facts& f) { return f.run.most_promised; }},
      {{"regret", "regret", "share", less,
        "how far the policy stays behind the oracle by the scenario's `objective`; only where it has one. Of "
        "a "
        "rate times the share of the jobs that were completed",
        "mean_completion_s / that of the oracle − 1, or 1 − rate · completed / jobs / rate of the oracle"},
       [](const Facts& f) { return f.regret(); }},
  };
  return rows;
}

}  // namespace

std::vector<Metric> jobs_metrics(const JobQueueSetup& setup, const JobQueueRun& run,
                                 const QueueRival& rival) {
  return measure(rows(), Facts{.setup = setup, .run = run, .rival = rival});
}

const MetricTable& jobs_metric_table() {
  static const MetricTable table = table_of(rows());
  return table;
}

}  // namespace vramlab
