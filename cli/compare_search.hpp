// The part of `compare` that speaks of searches for the largest batch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "lab/json_text.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads the scenario. What is returned runs the searchers labelled so, all if there are none, prints verdict
/// and table, and returns the result.
std::function<Json(Output&)> ready_search_comparison(const ScenarioText& text,
                                                     const std::vector<std::string>& labels);

}  // namespace vramlab
