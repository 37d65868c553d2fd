// The part of `compare` that speaks of jobs on shared cards.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "lab/json_text.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads the scenario. What is returned runs the policies labelled so, all if there are none, prints verdict
/// and table, and returns the result.
std::function<Json(Output&)> ready_jobs_comparison(const ScenarioText& text,
                                                   const std::vector<std::string>& labels);

}  // namespace vramlab
