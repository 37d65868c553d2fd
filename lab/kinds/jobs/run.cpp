#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/jobs/view.hpp"
#include "lab/metric.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

std::vector<JobsResult> compare_queues(const JobsScenario& scenario, const std::vector<std::string>& labels) {
  require_labels(scenario, labels);
  std::vector<JobsResult> results;
  for (const PolicyEntry& entry : scenario.policies) {
    if (!is_wanted(labels, entry.label)) continue;
    const auto policy = scenario.known->admitters.make(entry.choice);
    JobsResult result{
        entry.choice.use, entry.choice.profile, entry.label, run_job_queue(scenario.setup, *policy), {}};
    result.metrics = jobs_metrics(scenario.setup, result.run);
    results.push_back(std::move(result));
  }
  return results;
}

std::string_view outcome_name(JobOutcome outcome) {
  switch (outcome) {
    case JobOutcome::completed:
      return "completed";
    case JobOutcome::refused:
      return "refused";
    case JobOutcome::wait_timeout:
      return "wait timeout";
    case JobOutcome::job_timeout:
      return "job timeout";
    case JobOutcome::out_of_memory:
      return "out of memory";
    case JobOutcome::crashed:
      return "crashed";
    case JobOutcome::pending:
      break;
  }
  return "pending";
}

namespace {

// Two passes: the squares of far numbers would lose what lies between them.
Metric spread_of(const std::string& name, double mean, const std::vector<double>& values) {
  if (values.size() < 2) return {name, std::nan("")};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {name, std::sqrt(squares / static_cast<double>(values.size() - 1))};
}

constexpr std::size_t kMostJobs = 5;  // shown where an expectation does not hold

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

std::vector<SeededResult> compare_seeds(const std::vector<JobsScenario>& scenarios,
                                        const std::vector<std::string>& labels) {
  if (scenarios.size() < 2) throw InternalError("a spread needs two seeds");
  std::vector<std::vector<JobsResult>> runs;
  for (const JobsScenario& scenario : scenarios) {
    runs.push_back(compare_queues(scenario, labels));
    for (JobsResult& result : runs.back()) result.run = {};
  }
  std::vector<SeededResult> results;
  for (std::size_t policy = 0; policy < runs.front().size(); ++policy) {
    SeededResult result{.mean = runs.front()[policy], .spread = {}};
    for (std::size_t metric = 0; metric < result.mean.metrics.size(); ++metric) {
      std::vector<double> values;
      for (const auto& run : runs) {  // a seed without a completed job has no times of them
        const double value = run[policy].metrics[metric].value;
        if (!std::isnan(value)) values.push_back(value);
      }
      Metric& mean = result.mean.metrics[metric];
      mean.value = mean_of(values);
      result.spread.push_back(spread_of(mean.name, mean.value, values));
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<std::string> jobs_to_look_at(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::vector<std::size_t> order(run.jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto completed = [&](std::size_t i) { return run.jobs[i].outcome == JobOutcome::completed; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (completed(a) != completed(b)) return completed(b);
    return completed(a) ? run.jobs[a].waited > run.jobs[b].waited : run.jobs[a].end < run.jobs[b].end;
  });
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(order.size(), kMostJobs); ++i) {
    const JobRecord& job = run.jobs[order[i]];
    lines.push_back(fmt::format("  {}: arrived at {:.1f} s, waited {:.1f} s, {} at {:.1f} s, {} OOMs{}",
                                setup.jobs[order[i]].name, to_seconds(setup.jobs[order[i]].arrival),
                                to_seconds(job.waited), outcome_name(job.outcome), to_seconds(job.end),
                                job.ooms, job.reason.empty() ? "" : " (" + job.reason + ")"));
  }
  return lines;
}

}  // namespace vramlab
