// Every metric, defined once, and the figures of a run by their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/kinds/training/spec.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// Which way a metric is better, where one can say so.
enum class Better : std::uint8_t { neither, more, less };

/// What one metric means.
struct MetricDescription {
  std::string name;   ///< as in JSON and in expectations
  std::string title;  ///< short, for the head of a column
  std::string unit;   ///< "count", "share", "bytes", "s", "1/s", "h" or "score"
  Better better = Better::neither;
  std::string about;    ///< one sentence without its full stop
  std::string formula;  ///< in the names of the other metrics and of the trace; empty if `about` says it all
};

/// The metrics of one kind of scenario.
struct MetricFamily {
  std::string kind;  ///< "training", "jobs", …
  std::vector<MetricDescription> metrics;
};

/// All of them, in the order of the documents.
const std::vector<MetricFamily>& metric_families();

/// The metrics of scenarios of `kind`, in the order of results. Throws InternalError for an unknown kind.
const std::vector<MetricDescription>& metrics_of(std::string_view kind);

/// "more", "less" or "".
std::string_view better_name(Better better);

// The figures a run is judged by. docs/metrics.md says what each means.

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
std::vector<Metric> training_metrics(const TrainingScenario& scenario, const TrainingRun& run);

/// The value called `name`; empty if there is none.
std::optional<double> find_metric(const std::vector<Metric>& metrics, std::string_view name);

/// Names of all metrics of a training run, those of comparisons included.
std::vector<std::string> training_metric_names();

/// Work done by `objective`, from sums over the steps that did not fail and the time of all.
double objective_of(Objective objective, double samples, double pixels, double seconds);

/// Whether `peak` is at most target plus margin of `total`.
bool within_target(const Target& target, Bytes peak, Bytes total);

}  // namespace vramlab
