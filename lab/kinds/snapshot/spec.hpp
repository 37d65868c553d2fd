// A scenario of kind `snapshot`: a recorded or hand-written program, the settings and cards to replay it
// under, and what must come out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lab/metric.hpp"
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
struct SnapshotResult : LabelledFigures {
  WhatIfRow row;
  Json json;
};

/// Reads a scenario of kind `snapshot`. Throws InputError with every problem of the file.
SnapshotScenario read_snapshot(const ScenarioDocument& document);

/// The keys of such a file.
const RecordBase& snapshot_table();

/// All figures of a row in a fixed order, and behind them those that only a mark has (docs/metrics.md).
const MetricTable& snapshot_metric_table();

/// Every figure of a row, and every one at a mark.
std::vector<std::string> snapshot_metric_names();
std::vector<std::string> snapshot_mark_metric_names();

/// The figures of a whole row, from its JSON.
std::vector<Metric> snapshot_metrics(const Json& row);

/// The figure called `name`, at `mark` where one is given; NaN if it has no value or the program ended
/// before.
double snapshot_figure(const SnapshotResult& result, const std::string& name, const std::string& mark);

}  // namespace vramlab
