// What a comparison of training runs comes to: a line, JSON.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/scenario/expectations.hpp"

namespace vramlab {

/// Names the best policy and how far it is from the oracle. Policies are ranked first by safety (no OOM and,
/// in the last quarter of the run, never above target plus margin; then no OOM; then the others; last those
/// whose run ended early), then by work done.
std::string verdict(const TrainingScenario& scenario, const Comparison& comparison);

// Results as JSON, for scripts and for plotting later.

/// The result of `compare`; `trace_files` gives the trace written for a label, where there is one.
Json comparison_json(const TrainingScenario& scenario, const Comparison& comparison,
                     const std::map<std::string, std::string>& trace_files);

/// A figure; whole numbers are written as such (53, not 53.0), what is not there as null.
Json number_json(double value);

/// Figures by their names.
Json figures_json(const std::vector<Metric>& figures);

/// The expectations of one scenario file, for the result of `check`.
Json expectations_json(const std::string& file, const std::vector<CheckedExpectation>& checked);

}  // namespace vramlab
