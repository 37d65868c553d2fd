#include <algorithm>

#include "lab/jobs_scenario.hpp"
#include "lab/result_json.hpp"
#include "policies/admitter_registry.hpp"
#include "sim/core/error.hpp"

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
    const auto policy = make_admitter(entry.choice, scenario.known->admitters);
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

}  // namespace vramlab
