// vramlab compare on a scenario with a "sweep": every combination, side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "lab/scenario/file.hpp"

namespace vramlab {

/// Adds --results, --metric and -j.
void add_sweep_options(Options& options);

/// Throws InputError if --results or --metric was given, which say something of sweeps only.
void require_no_sweep_options(const Arguments& arguments);

/// Runs the sweep of `scenario` and prints its tables. Returns the JSON result; nothing if the user stopped
/// it.
std::optional<Json> compare_sweep(const ScenarioDocument& scenario, const std::vector<std::string>& labels,
                                  const Arguments& arguments, Output& output);

}  // namespace vramlab
