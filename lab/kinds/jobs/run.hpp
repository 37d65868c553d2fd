// The same scenario drawn with several seeds: what of a result is the policy, and what is luck.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {

/// The metrics of one policy over several seeds.
struct SeededResult {
  JobsResult mean;             ///< `metrics` are means; `run` is empty
  std::vector<Metric> spread;  ///< standard deviations of the sample (n − 1)
};

/// Runs the policies labelled so, all if there are none, on each scenario: one scenario, one seed each. There
/// must be at least two. Throws InputError for an unknown label, and if nothing of the scenario is drawn.
std::vector<SeededResult> compare_seeds(const std::vector<JobsScenario>& scenarios,
                                        const std::vector<std::string>& labels);

Json seeds_json(const std::vector<JobsScenario>& scenarios, const std::vector<SeededResult>& results);

}  // namespace vramlab
