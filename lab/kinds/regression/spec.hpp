// A scenario of kind `regression`: a golden recording, a new one, what may grow, and cards that must hold
// both.
#pragma once

#include <string>
#include <vector>

#include "lab/judge/judgement.hpp"
#include "lab/judge/view.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/scenario.hpp"

namespace vramlab {

/// Two recordings, checked and ready to be judged.
struct RegressionScenario : Scenario {
  JudgedFiles files;  ///< as they were found
  std::vector<ClientProgram> golden;
  std::vector<ClientProgram> now;
  JudgeQuestion question;
};

/// What expectations call the one run.
inline constexpr const char* kRegressionLabel = "new";

/// A judgement with its figures.
struct RegressionResult : LabelledFigures {
  std::vector<Judgement> judgements;
};

/// Reads a scenario of kind `regression`. Throws InputError with every problem of the file.
RegressionScenario read_regression(const ScenarioDocument& document);

/// The keys of such a file.
const RecordBase& regression_table();

/// All figures, in a fixed order (docs/metrics.md).
const MetricTable& regression_metric_table();
std::vector<Metric> regression_metrics(const std::vector<Judgement>& judgements);

}  // namespace vramlab
