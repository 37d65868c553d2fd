// The part of `compare` that speaks of jobs on shared cards.
#pragma once

#include <string>
#include <vector>

#include "cli/output.hpp"
#include "lab/jobs_scenario.hpp"

namespace vramlab {

/// Runs the policies labelled so, all if there are none, prints verdict and table, and returns the result.
Json compare_jobs(const JobsScenario& scenario, const std::vector<std::string>& labels, Output& output);

}  // namespace vramlab
