// vramlab compare on a scenario with a "sweep": every combination, side by side.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "lab/scenario/file.hpp"

namespace vramlab {

/// Adds --results, --resume, --shard, --metric and -j.
void add_sweep_options(Options& options);

/// Throws InputError if one of them but -j was given, which say something of sweeps only.
void require_no_sweep_options(const Arguments& arguments);

/// Runs the sweep of `scenario` and prints its tables. Returns the JSON result; nothing if the user stopped
/// it, which is said, and where another process shows it.
std::optional<Json> compare_sweep(const ScenarioDocument& scenario, const std::vector<std::string>& labels,
                                  const Arguments& arguments, Output& output);

/// Joins the results of parts of a sweep in the file of --results, which may have runs already, and prints
/// the tables of all. Returns the JSON result, and how many runs are in none of them. Throws InputError for a
/// part that is not of this sweep, or that has other figures of a run than another.
std::pair<Json, std::size_t> merge_sweep(const ScenarioDocument& scenario,
                                         const std::vector<std::string>& parts, const Arguments& arguments,
                                         Output& output);

}  // namespace vramlab
