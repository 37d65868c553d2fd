// Runs the policies of a scenario side by side and measures each against the best fixed choice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/metrics.hpp"
#include "lab/scenario.hpp"

namespace vramlab {

/// What one policy did.
struct PolicyResult {
  std::string policy;   ///< name in the registry, or "oracle"
  std::string profile;  ///< empty if it has none
  std::string label;
  TrainingRun run;
  std::vector<Metric> metrics;
};

/// All policies of a scenario, in its order; the oracle, where there is one, comes last.
struct Comparison {
  std::vector<PolicyResult> policies;

  /// The result with that label; null if there is none.
  [[nodiscard]] const PolicyResult* find(const std::string& label) const;
};

/// Runs the policy of one entry.
PolicyResult run_policy(const Scenario& scenario, const PolicyEntry& entry);

/// Throws InputError, with the nearest right ones, for a label that is not in the scenario.
void require_labels(const Scenario& scenario, const std::vector<std::string>& labels);

/// Runs all policies and the oracle, and adds each one's regret. Without any safe fixed choice there is
/// no oracle and no regret. `labels` names the policies to run; empty = all.
/// Throws InputError for a label that is not in the scenario.
Comparison compare_policies(const Scenario& scenario, const std::vector<std::string>& labels = {});

/// The best fixed choice: of all points within bounds that never fail and never use more than target plus
/// margin, the one that does most work by the scenario's objective; among equals the larger last
/// parameter. Found by simulating, not by formula. Empty if none of the points tried is safe; ranges with
/// more than 1,024 values of the other parameters are tried in strides.
std::optional<PolicyResult> find_oracle(const Scenario& scenario);

}  // namespace vramlab
