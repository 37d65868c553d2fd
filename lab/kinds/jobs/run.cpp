#include <cmath>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

// Two passes: the squares of far numbers would lose what lies between them.
double spread_of(const std::vector<double>& values, double mean) {
  if (values.size() < 2) return std::nan("");
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

std::vector<JobsResult> compare_queues(const JobsScenario& scenario, const std::vector<std::string>& labels) {
  return run_policies(scenario, labels, [&](const PolicyEntry& entry) {
    const auto policy = scenario.known->admitters.make(entry.choice);
    JobsResult result{named_after(entry), run_job_queue(scenario.setup, *policy)};
    result.metrics = jobs_metrics(scenario.setup, result.run);
    return result;
  });
}

std::vector<JobsResult> compare_seeds(const std::vector<JobsScenario>& scenarios,
                                      const std::vector<std::string>& labels) {
  if (scenarios.size() < 2) throw InternalError("a spread needs two seeds");
  std::vector<std::vector<JobsResult>> runs;
  for (const JobsScenario& scenario : scenarios) {
    runs.push_back(compare_queues(scenario, labels));
    for (JobsResult& result : runs.back()) result.run = {};
  }
  std::vector<JobsResult> results = runs.front();
  for (std::size_t policy = 0; policy < results.size(); ++policy) {
    for (std::size_t metric = 0; metric < results[policy].metrics.size(); ++metric) {
      std::vector<double> values;
      for (const auto& run : runs) {  // a seed without a completed job has no times of them
        const double value = run[policy].metrics[metric].value;
        if (!std::isnan(value)) values.push_back(value);
      }
      Metric& mean = results[policy].metrics[metric];
      mean.value = mean_of(values);
      results[policy].spread.push_back({mean.name, spread_of(values, mean.value)});
    }
  }
  return results;
}

}  // namespace vramlab
