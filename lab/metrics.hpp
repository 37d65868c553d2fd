// The figures a run is judged by. docs/metrics.md says what each means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/scenario.hpp"
#include "sim/workload/training_loop.hpp"

namespace vramlab {

/// One figure with its name.
struct Metric {
  std::string name;
  double value = 0;
};

/// The figures of one policy's run, where nothing else of it is needed.
struct LabelledFigures {
  std::string label;
  std::vector<Metric> metrics;
};

/// All metrics of a run in a fixed order, without those that compare it with another run: `regret` and
/// `disturbance_cost`.
std::vector<Metric> training_metrics(const Scenario& scenario, const TrainingRun& run);

/// The value called `name`; empty if there is none.
std::optional<double> find_metric(const std::vector<Metric>& metrics, std::string_view name);

/// Names of all metrics of a training run, those of comparisons included.
std::vector<std::string> training_metric_names();

/// Work done by `objective`, from sums over the steps that did not fail and the time of all.
double objective_of(Objective objective, double samples, double pixels, double seconds);

/// Whether `peak` is at most target plus margin of `total`.
bool within_target(const Target& target, Bytes peak, Bytes total);

}  // namespace vramlab
