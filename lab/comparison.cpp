#include "lab/comparison.hpp"

#include <algorithm>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

TrainingRun run_tuner(const Scenario& scenario, const PolicyEntry& entry) {
  try {
    return run_training(scenario.setup,
                        make_tuner(entry.choice, scenario.setup.bounds, scenario.known->tuners), entry.cards);
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": /workload", error.problems().front().what);
  }
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
  const TunerProfile* profile =
      find_profile(find_tuner(entry.choice.use, {}, scenario.known->tuners), entry.choice.profile);
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
  Comparison comparison;
  for (const PolicyEntry& entry : scenario.policies) {
    const bool wanted =
        labels.empty() || std::find(labels.begin(), labels.end(), entry.label) != labels.end();
    if (wanted) comparison.policies.push_back(run_policy(scenario, entry));
  }
  auto oracle = find_oracle(scenario);
  if (!oracle) return comparison;
  const double best = *find_metric(oracle->metrics, "objective");
  comparison.policies.push_back(std::move(*oracle));
  for (PolicyResult& result : comparison.policies) {
    const double done = *find_metric(result.metrics, "objective");
    result.metrics.push_back({"regret", best > 0 ? (best - done) / best : 0});
  }
  return comparison;
}

}  // namespace vramlab
