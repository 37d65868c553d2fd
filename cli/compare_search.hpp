// Comparing the searchers of a scenario of kind `search`.
#pragma once

#include "cli/output.hpp"
#include "lab/search_scenario.hpp"

namespace vramlab {

/// Runs the searchers labelled so (all if there are none), prints verdict and table, and returns the JSON.
Json compare_search(const SearchScenario& scenario, const std::vector<std::string>& labels, Output& output);

}  // namespace vramlab
