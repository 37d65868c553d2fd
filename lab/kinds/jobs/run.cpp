#include "lab/kinds/jobs/run.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/training/view.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

void require_known(const JobsScenario& scenario, const std::vector<std::string>& labels) {
  std::vector<std::string> known;
  for (const PolicyEntry& entry : scenario.policies) known.push_back(entry.label);
  for (const std::string& label : labels) {
    if (std::find(known.begin(), known.end(), label) != known.end()) continue;
    throw InputError(scenario.file, "no policy is labelled \"" + label + "\"." + suggest_name(label, known));
  }
}

}  // namespace

std::vector<JobsResult> compare_queues(const JobsScenario& scenario, const std::vector<std::string>& labels) {
  require_known(scenario, labels);
  std::vector<JobsResult> results;
  for (const PolicyEntry& entry : scenario.policies) {
    if (!labels.empty() && std::find(labels.begin(), labels.end(), entry.label) == labels.end()) continue;
    const auto policy = scenario.known->admitters.make(entry.choice);
    JobsResult result{
        entry.choice.use, entry.choice.profile, entry.label, run_job_queue(scenario.setup, *policy), {}};
    result.metrics = jobs_metrics(scenario.setup, result.run);
    results.push_back(std::move(result));
  }
  return results;
}

Json jobs_json(const JobsScenario& scenario, const std::vector<JobsResult>& results,
               const std::map<std::string, std::vector<std::string>>& trace_files) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["fidelity"] = scenario.setup.steps ? "steps" : "declared";
  json["notes"] = scenario.notes;
  json["policies"] = Json::array();
  for (const JobsResult& result : results) {
    Json entry;
    entry["policy"] = result.policy;
    entry["profile"] = result.profile;
    entry["label"] = result.label;
    entry["metrics"] = figures_json(result.metrics);
    if (!result.run.ended_early.empty()) entry["ended_early"] = result.run.ended_early;
    const auto files = trace_files.find(result.label);
    entry["trace_files"] = files == trace_files.end() ? Json::array() : Json(files->second);
    json["policies"].push_back(std::move(entry));
  }
  return json;
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
