// The part of `compare` that speaks of epochs over a data set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "lab/json_text.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads the scenario. What is returned runs the composers labelled so, all if there are none, prints verdict
/// and table, writes what the monitor has to say into folders of `trace_dir` (none if empty), and returns the
/// result.
std::function<Json(Output&)> ready_epoch_comparison(const ScenarioText& text,
                                                    const std::vector<std::string>& labels,
                                                    const std::string& trace_dir);

}  // namespace vramlab
