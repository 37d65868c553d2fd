#include "lab/comparison.hpp"

#include <algorithm>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

TrainingRun run_tuner(const Scenario& scenario, const PolicyEntry& entry) {
  try {
    return run_training(scenario.setup,
                        TunerMaker{[&] { return make_tuner(entry.choice, scenario.setup.bounds); }},
                        entry.cards);
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": /workload", error.problems().front().what);
  }
}

// The same run without anything that disturbs it, if anything does.
std::optional<Scenario> undisturbed(const Scenario& scenario) {
  Scenario calm = scenario;
  calm.setup.faults = {.seed = scenario.setup.faults.seed};
  calm.setup.others.clear();
  calm.setup.phases.clear();
  const bool differs = calm.setup.faults != scenario.setup.faults || !scenario.setup.others.empty() ||
                       !scenario.setup.phases.empty();
  return differs ? std::optional{std::move(calm)} : std::nullopt;
}

double share_lost(const PolicyResult& result, double without) {
  return without > 0 ? (without - *find_metric(result.metrics, "objective")) / without : 0;
}

}  // namespace

void require_labels(const Scenario& scenario, const std::vector<std::string>& labels) {
  std::vector<std::string> known;
  for (const PolicyEntry& entry : scenario.policies) known.push_back(entry.label);
  std::vector<Problem> problems;
  for (const std::string& label : labels) {
    if (std::find(known.begin(), known.end(), label) != known.end()) continue;
    problems.push_back(
        {scenario.file, "no policy is labelled \"" + label + "\"." + suggest_name(label, known)});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

const PolicyResult* Comparison::find(const std::string& label) const {
  const auto found = std::find_if(policies.begin(), policies.end(),
                                  [&](const PolicyResult& result) { return result.label == label; });
  return found == policies.end() ? nullptr : &*found;
}

PolicyResult run_policy(const Scenario& scenario, const PolicyEntry& entry) {
  const TunerProfile* profile = find_profile(find_tuner(entry.choice.use), entry.choice.profile);
  PolicyResult result{.policy = entry.choice.use,
                      .profile = profile != nullptr ? profile->name : "",
                      .label = entry.label,
                      .run = run_tuner(scenario, entry),
                      .metrics = {}};
  result.metrics = training_metrics(scenario, result.run);
  return result;
}

Comparison compare_policies(const Scenario& scenario, const std::vector<std::string>& labels) {
  require_labels(scenario, labels);
  const std::optional<Scenario> calm = undisturbed(scenario);
  Comparison comparison;
  for (const PolicyEntry& entry : scenario.policies) {
    const bool wanted =
        labels.empty() || std::find(labels.begin(), labels.end(), entry.label) != labels.end();
    if (!wanted) continue;
    comparison.policies.push_back(run_policy(scenario, entry));
    if (!calm) continue;
    PolicyResult& result = comparison.policies.back();
    const PolicyResult without = run_policy(*calm, entry);
    result.metrics.push_back(
        {"disturbance_cost", share_lost(result, *find_metric(without.metrics, "objective"))});
  }
  auto oracle = find_oracle(scenario);
  if (!oracle) return comparison;
  const double best = *find_metric(oracle->metrics, "objective");
  comparison.policies.push_back(std::move(*oracle));
  for (PolicyResult& result : comparison.policies) {
    result.metrics.push_back({"regret", share_lost(result, best)});
  }
  return comparison;
}

}  // namespace vramlab
