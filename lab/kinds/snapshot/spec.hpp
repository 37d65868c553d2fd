// A scenario of kind `snapshot`: a recorded or hand-written program, the settings and cards to replay it
// under, and what must come out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lab/experiment.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/scenario.hpp"
#include "lab/whatif/whatif.hpp"

namespace vramlab {

/// One combination of settings and card.
struct SnapshotRow {
  std::string label;
  WhatIfQuestion question;  ///< of one row
};

/// A scenario over a program, checked and ready to run.
struct SnapshotScenario : Scenario {
  std::vector<ClientProgram> programs;  ///< one
  std::vector<SnapshotRow> rows;
};

/// The answer for one row, and its figures as `whatif --json` has them.
struct SnapshotResult {
  std::string label;
  WhatIfRow row;
  Json json;
};

/// Reads a scenario of kind `snapshot`. Throws InputError with every problem of the file.
SnapshotScenario read_snapshot(const ScenarioDocument& document);

/// The keys of such a file.
const RecordBase& snapshot_table();

/// Replays every row, in the order of the file, and keeps its map where `maps` are wanted.
std::vector<SnapshotResult> replay_rows(const SnapshotScenario& scenario, bool maps = false);

/// Every figure of a row, and every one at a mark.
std::vector<std::string> snapshot_metric_names();
std::vector<std::string> snapshot_mark_metric_names();

ReadyScenario ready_snapshot(const ScenarioDocument& text);

}  // namespace vramlab
