// vramlab compare on a scenario with a "sweep": every combination, side by side; its file and its tables.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/sweep_results.hpp"

namespace vramlab {

/// Adds --results, --metric and -j.
void add_sweep_options(Options& options);

/// Throws InputError if --results or --metric was given, which say something of sweeps only.
void require_no_sweep_options(const Arguments& arguments);

/// Runs the sweep of `scenario` and prints its tables. Returns the JSON result; sets `code` to what the
/// program is to end with.
Json compare_sweep(const ScenarioDocument& scenario, const std::vector<std::string>& labels,
                   const Arguments& arguments, Output& output, int& code);

// The file that a sweep goes on from and is kept in.

/// What --results names; an empty name stands for no file.
class SweepResultsFile {
 public:
  /// Throws InputError for a name without the ending of one of the forms.
  explicit SweepResultsFile(std::string name);

  /// What it has, as read_sweep_results. Throws InputError also if it could not be written after all the
  /// work.
  [[nodiscard]] SweepResults read(const Sweep& sweep, const std::vector<std::string>& keys) const;

  /// Writes it unless it says the same already. Returns whether it was written.
  bool keep(const Sweep& sweep, const SweepResults& results, const std::vector<std::string>& keys) const;

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// The tables of a sweep in a terminal.

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
