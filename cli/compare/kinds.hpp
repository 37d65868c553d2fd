// What `compare` is asked for beyond a scenario, and its parts by kind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "lab/json.hpp"
#include "lab/scenario/file.hpp"
#include "sim/runs/card_runner.hpp"

namespace vramlab {

/// The options, read.
struct ComparisonQuestion {
  std::vector<std::string> labels;  ///< policies to run; empty = all
  std::string picture;              ///< empty = none
  std::string trace_dir;            ///< empty = none
  bool report = false;              ///< --report is given
  std::int64_t seeds = 1;           ///< above 1: means and spreads over so many, from the scenario's on
  MakePerformer make_performer{};   ///< empty = pretended cards
};

/// A scenario that was read: runs it, prints verdict and tables, writes what was asked for, and returns the
/// result.
using ReadyComparison = std::function<Json(Output&)>;

// The part of `compare` that speaks of epochs over a data set.

/// Reads the scenario. Throws InputError with everything wrong with it. What the monitor has to say goes to
/// folders of the trace folder.
ReadyComparison ready_epoch_comparison(const ScenarioDocument& document, const ComparisonQuestion& question);

// The part of `compare` that speaks of jobs on shared cards.

/// Reads the scenario. Throws InputError with everything wrong with it, and for several seeds where nothing
/// of it is drawn.
ReadyComparison ready_jobs_comparison(const ScenarioDocument& document, const ComparisonQuestion& question);

// The part of `compare` that speaks of searches for the largest batch.

/// Reads the scenario. Throws InputError with everything wrong with it.
ReadyComparison ready_search_comparison(const ScenarioDocument& document, const ComparisonQuestion& question);

// The part of `compare` that speaks of a program replayed under several settings and cards.

/// Reads the scenario. Throws InputError with everything wrong with it. The labels asked for are those of
/// rows.
ReadyComparison ready_snapshot_comparison(const ScenarioDocument& document,
                                          const ComparisonQuestion& question);

}  // namespace vramlab
