// A scenario of kind `snapshot`: a recorded or hand-written program, the settings and cards to replay it
// under, and what must come out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lab/experiment.hpp"
#include "lab/kinds/training/spec.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/whatif/whatif.hpp"

namespace vramlab {

/// One combination of settings and card.
struct SnapshotRow {
  std::string label;
  WhatIfQuestion question;  ///< of one row
};

/// A scenario over a program, checked and ready to run.
struct SnapshotScenario {
  std::string file;  ///< as it was named
  std::string name;
  std::string description;
  std::vector<ClientProgram> programs;  ///< one
  std::vector<SnapshotRow> rows;
  std::vector<Expectation> expectations;  ///< on metrics, at a mark or at the end
};

/// The answer for one row, and its figures as `whatif --json` has them.
struct SnapshotResult {
  std::string label;
  WhatIfRow row;
  Json json;
};

/// Reads a scenario file of kind `snapshot`. Throws InputError with every problem of the file.
SnapshotScenario parse_snapshot_scenario(const std::string& text, const std::filesystem::path& file);

/// The keys of such a file, and its JSON schema (draft 7).
std::vector<Field> snapshot_fields();
Json snapshot_schema(const PolicySet& known);

/// Replays every row, in the order of the file.
std::vector<SnapshotResult> replay_rows(const SnapshotScenario& scenario);

/// Every figure of a row, and every one at a mark.
std::vector<std::string> snapshot_metric_names();
std::vector<std::string> snapshot_mark_metric_names();

ReadyScenario ready_snapshot(const ScenarioText& text);

}  // namespace vramlab
