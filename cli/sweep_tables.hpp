// The tables of a sweep in a terminal.
#pragma once

#include <string>
#include <vector>

#include "cli/output.hpp"
#include "lab/metric_table.hpp"
#include "lab/sweep_results.hpp"

namespace vramlab {

/// The figures of one policy over all runs that have the metric.
struct Spread {
  std::string policy;
  std::vector<double> values;
  std::size_t runs = 0;
  std::size_t with_oom = 0;
  std::size_t best = 0;  ///< runs in which no other policy does better
};

/// One for each policy, in the order of the runs.
std::vector<Spread> spreads_of(const SweepResults& results, const MetricDescription& metric);

/// Which policy is best, in a sentence; only the number `done` of runs where the metric ranks nothing.
std::string sweep_verdict(const std::vector<Spread>& spreads, const MetricDescription& metric,
                          std::size_t done);

/// A row for each policy.
Table spreads_table(const std::vector<Spread>& spreads, const MetricDescription& metric);

/// For each policy but the oracle the metric by the first axis down and the second across, means over the
/// others. Axes too long for a terminal are named instead.
void print_matrices(const Sweep& sweep, const SweepResults& results, const std::vector<Spread>& spreads,
                    const MetricDescription& metric, Output& output);

}  // namespace vramlab
