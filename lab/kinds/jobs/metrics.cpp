#include <algorithm>
#include <cmath>

#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {
namespace {

// Of nothing there is no mean.
double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The smallest value that at least `share` of all do not exceed; none of nothing. `values` are sorted.
double quantile(const std::vector<double>& values, double share) {
  if (values.empty()) return std::nan("");
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

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

/// The figures of single jobs, over all but those refused.
struct Spread {
  std::vector<double> waits;
  std::vector<double> completions;  ///< of completed jobs
  std::vector<double> progress;     ///< duration over time in the system; 0 for jobs that did not complete
  std::vector<double> slow_downs;   ///< of completed jobs, its inverse
};

Spread spread_of(const JobQueueSetup& setup, const JobQueueRun& run) {
  Spread spread;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    const JobRecord& job = run.jobs[i];
    if (job.outcome == JobOutcome::refused) continue;
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

}  // namespace

std::vector<Metric> jobs_metrics(const JobQueueSetup& setup, const JobQueueRun& run) {
  const Spread spread = spread_of(setup, run);
  const auto count = [&](JobOutcome outcome) {
    return static_cast<double>(std::count_if(run.jobs.begin(), run.jobs.end(),
                                             [&](const JobRecord& job) { return job.outcome == outcome; }));
  };
  double wasted = 0;
  double ooms = 0;
  for (const JobRecord& job : run.jobs) {
    wasted += to_seconds(job.wasted) / 3600;
    ooms += job.ooms;
  }
  const double makespan = to_seconds(run.end - run.begin);
  const double whole = static_cast<double>(run.capacity) * makespan;
  return {
      {"jobs", static_cast<double>(run.jobs.size())},
      {"completed", count(JobOutcome::completed)},
      {"makespan_s", makespan},
      {"mean_wait_s", mean(spread.waits)},
      {"p50_wait_s", quantile(spread.waits, 0.5)},
      {"p99_wait_s", quantile(spread.waits, 0.99)},
      {"mean_completion_s", mean(spread.completions)},
      {"p99_completion_s", quantile(spread.completions, 0.99)},
      {"mean_slow_down", mean(spread.slow_downs)},
      {"timeouts", count(JobOutcome::wait_timeout) + count(JobOutcome::job_timeout)},
      {"refused", count(JobOutcome::refused)},
      {"failed", count(JobOutcome::out_of_memory) + count(JobOutcome::crashed)},
      {"oom_kills", ooms},
      {"gpu_hours_wasted", wasted},
      {"memory_utilisation", whole > 0 ? run.byte_seconds / whole : 0},
      {"fairness", jain(spread.progress)},
      {"overcommits", static_cast<double>(run.overcommits)},
      {"alerts", static_cast<double>(run.alerts)},
      {"most_active_jobs", static_cast<double>(run.most_active)},
      {"most_pending_jobs", static_cast<double>(run.most_pending)},
      {"most_promised_bytes", static_cast<double>(run.most_promised)},
  };
}

std::vector<std::string> jobs_metric_names() {
  std::vector<std::string> names;
  for (const Metric& metric : jobs_metrics({}, {})) names.push_back(metric.name);
  return names;
}

}  // namespace vramlab
