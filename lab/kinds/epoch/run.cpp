#include <algorithm>

#include "core/error.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/training/view.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

void require_labels(const EpochScenario& scenario, const std::vector<std::string>& labels) {
  std::vector<std::string> known;
  for (const PolicyEntry& entry : scenario.policies) known.push_back(entry.label);
  for (const std::string& label : labels) {
    if (std::find(known.begin(), known.end(), label) != known.end()) continue;
    throw InputError(scenario.file, "no policy is labelled \"" + label + "\"." + suggest_name(label, known));
  }
}

namespace {

void add_statistics(std::vector<Statistic>& sums, const std::vector<Statistic>& later) {
  for (const Statistic& one : later) {
    const auto same =
        std::find_if(sums.begin(), sums.end(), [&](const Statistic& sum) { return sum.name == one.name; });
    same == sums.end() ? sums.push_back(one) : void(same->value += one.value);
  }
}

void go_on(EpochRun& run, EpochRun later) {
  run.totals.add(later.totals);
  add_statistics(run.statistics, later.statistics);
  run.gradient_shares = std::move(later.gradient_shares);  // these are part of the state
  run.alloc_retries += later.alloc_retries;
  run.phases.add(later.phases);
  run.faults.add(later.faults);
  run.state = std::move(later.state);
  run.ended_early = std::move(later.ended_early);
  run.complete = later.complete;
}

EpochRun run_restarted(EpochSetup setup, const EpochScenario& scenario, const PolicyChoice& choice) {
  const auto composer = [&] { return scenario.known->composers.make(choice, setup.tasks); };
  setup.stop_after = scenario.restart_every;
  EpochRun run = run_epochs(setup, *composer());
  while (!run.complete && run.ended_early.empty()) {
    setup.start = run.state;
    go_on(run, run_epochs(setup, *composer()));
  }
  return run;
}

}  // namespace

EpochResult run_composer(const EpochScenario& scenario, const PolicyEntry& entry, BatchListener* listener) {
  EpochSetup setup = scenario.setup;
  setup.listener = listener;
  EpochResult result{
      entry.choice.use, entry.choice.profile, entry.label, run_restarted(setup, scenario, entry.choice), {}};
  result.metrics = epoch_metrics(setup, result.run);
  return result;
}

std::vector<EpochResult> compare_composers(const EpochScenario& scenario,
                                           const std::vector<std::string>& labels) {
  require_labels(scenario, labels);
  std::vector<EpochResult> results;
  for (const PolicyEntry& entry : scenario.policies) {
    if (!labels.empty() && std::find(labels.begin(), labels.end(), entry.label) == labels.end()) continue;
    results.push_back(run_composer(scenario, entry));
  }
  return results;
}

Json epoch_json(const EpochScenario& scenario, const std::vector<EpochResult>& results) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["notes"] = scenario.notes;
  json["series"] = scenario.series_origin.empty() ? Json(nullptr) : Json(scenario.series_origin);
  json["policies"] = Json::array();
  for (const EpochResult& result : results) {
    Json entry;
    entry["policy"] = result.policy;
    entry["profile"] = result.profile;
    entry["label"] = result.label;
    entry["metrics"] = figures_json(result.metrics);
    entry["tasks"] = task_json(scenario.setup, result.run);
    if (!result.run.ended_early.empty()) entry["ended_early"] = result.run.ended_early;
    for (const Statistic& statistic : result.run.statistics) {
      entry["statistics"][statistic.name] = number_json(statistic.value);
    }
    json["policies"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace vramlab
