// The part of `compare` that speaks of a program replayed under several settings and cards.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "lab/json_text.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads the scenario. What is returned replays the rows labelled so, all if there are none, prints verdict
/// and table, and returns the result.
std::function<Json(Output&)> ready_snapshot_comparison(const ScenarioText& text,
                                                       const std::vector<std::string>& labels);

}  // namespace vramlab
