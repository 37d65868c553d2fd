// What `compare` is asked for beyond a scenario, whatever its kind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "lab/json_text.hpp"
#include "sim/workload/card_runner.hpp"

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

}  // namespace vramlab
