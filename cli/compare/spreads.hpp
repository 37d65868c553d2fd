// Many runs of the same policies, by one metric: of a sweep, or of several seeds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/sweep_results.hpp"
#include "report/table.hpp"

namespace vramlab {

/// The figures of one policy over all runs that have the metric.
struct Spread {
  std::string policy;
  std::vector<double> values;
  std::size_t runs = 0;
  std::size_t finished = 0;
  std::size_t with_oom = 0;
  std::size_t best = 0;  ///< runs in which no other policy that finished does better
};

/// One for each policy, in the order of the runs.
std::vector<Spread> spreads_of(const SweepResults& results, const MetricDescription& metric);

/// A row for each policy.
Table spreads_table(const std::vector<Spread>& spreads, const MetricDescription& metric);

/// Which policy is best, in a sentence; only the number `done` of runs where the metric ranks nothing.
std::string sweep_verdict(const std::vector<Spread>& spreads, const MetricDescription& metric,
                          std::size_t done);

/// What makes a policy the best of a run here; empty where the metric ranks nothing.
std::string sweep_rule(const MetricDescription& metric);

/// The figure called `name`; empty if there is none.
std::optional<double> figure(const LabelledFigures& result, const std::string& name);

/// As tables show it.
std::string figure_text(double value, const MetricDescription& metric);

/// The metric of --metric, or the first of the scenario's kind. Throws InputError for a kind that is never
/// run many times, and for a metric that it does not have.
const MetricDescription& shown_metric(const ScenarioDocument& scenario, const Arguments& arguments);

}  // namespace vramlab
