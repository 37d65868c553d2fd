#include "lab/jobs_seeds.hpp"

#include <cmath>

#include "lab/result_json.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

// Two passes: the squares of far numbers would lose what lies between them.
Metric spread_of(const std::string& name, double mean, const std::vector<double>& values) {
  if (values.size() < 2) return {name, std::nan("")};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {name, std::sqrt(squares / static_cast<double>(values.size() - 1))};
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

std::vector<SeededResult> compare_seeds(const std::vector<JobsScenario>& scenarios,
                                        const std::vector<std::string>& labels) {
  if (scenarios.size() < 2) throw InternalError("a spread needs two seeds");
  if (!scenarios.front().draws) {
    throw InputError(
        scenarios.front().file,
        "nothing of it is drawn (\"generate\", \"estimate_error\"): every seed gives the same run.");
  }
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

Json seeds_json(const std::vector<JobsScenario>& scenarios, const std::vector<SeededResult>& results) {
  std::vector<JobsResult> means;
  for (const SeededResult& result : results) means.push_back(result.mean);
  Json json = jobs_json(scenarios.front(), means);
  json["seeds"] = scenarios.size();
  for (std::size_t i = 0; i < results.size(); ++i)
    json["policies"][i]["spread"] = figures_json(results[i].spread);
  return json;
}

}  // namespace vramlab
