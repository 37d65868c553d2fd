// Every tuner on every scenario, for every fault and several seeds: what each lost and how it got there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/kinds/training/run.hpp"
#include "lab/tasks.hpp"

namespace vramlab {

/// The tuners of a matrix by their labels, in the order of the registry: each built-in one under the names of
/// its profiles, or its own where it has none, but for `skeleton`, which is there to be copied; then those of
/// the plugins in `known` under their names, each with its default profile. Throws InputError if the tuner of
/// a plugin has a label that is taken.
std::vector<std::string> matrix_labels(const PolicySet& known = *builtin_policies());

/// `scenario`, which must know them, with exactly those tuners. One that the scenario names itself keeps its
/// options there; the others look as often as the scenario's first policy that says how often, or every 10
/// steps.
TrainingScenario with_matrix_tuners(TrainingScenario scenario, const PolicySet& known = *builtin_policies());

/// The runs of one tuner on one scenario, one a seed.
struct MatrixCell {
  std::optional<double> mean_regret;  ///< empty where there is no safe fixed choice
  std::optional<double> worst_regret;
  double ooms = 0;                   ///< mean over the seeds
  double adjustments = 0;            ///< mean
  double evaluations_to_settle = 0;  ///< worst
  double settled_at = 0;             ///< share of the iterations until the last change, worst
  double direction_changes = 0;      ///< worst
  double disturbance_cost = 0;       ///< mean
  bool ended_early = false;          ///< with any seed
  bool finished = true;              ///< with every seed, as the metric says
  double inside_target = 0;          ///< mean of that metric
};

/// One line: a scenario, with the faults of another one or its own.
struct MatrixRow {
  std::string scenario;
  std::string faults;             ///< name of the scenario they are from; empty = its own, or none
  std::string objective;          ///< by which regret is measured
  std::int64_t seeds = 0;         ///< runs a tuner; 1 where nothing is random
  bool context_assumed = false;   ///< what a context takes of its card was not measured
  std::vector<MatrixCell> cells;  ///< in the order of matrix_labels()
};

/// A scenario and the faults to run it with: a row.
struct MatrixTask {
  const TrainingScenario* scenario = nullptr;
  const TrainingScenario* faults = nullptr;  ///< faults and other processes are taken from it; null = its own
  std::string key{};                         ///< of both files (ResultKeys); may be empty
};

/// The runs of the tuners of `known` on every row with seeds 1 to `seeds`, seed by seed and row by row. They
/// refer to all that is given here.
std::vector<Task> tuner_matrix_tasks(const std::vector<MatrixTask>& rows, std::int64_t seeds,
                                     const PolicySet& known = *builtin_policies());

/// What those tasks came to, one a task, as rows.
std::vector<MatrixRow> tuner_matrix_rows(const std::vector<MatrixTask>& rows, std::int64_t seeds,
                                         const std::vector<Json>& results,
                                         const PolicySet& known = *builtin_policies());

/// Both, on up to `threads` threads. The result does not depend on them.
std::vector<MatrixRow> tuner_matrix(const std::vector<MatrixTask>& tasks, std::int64_t seeds,
                                    unsigned threads, const PolicySet& known = *builtin_policies());

/// One tuner over all rows.
struct MatrixSummary {
  std::string label;
  std::optional<double> median_regret;  ///< of the rows that have one
  std::optional<double> worst_regret;
  double unfinished_rows = 0;
  double rows_with_ooms = 0;
  double ooms = 0;  ///< sum of the rows' means
  double median_adjustments = 0;
  double worst_evaluations = 0;
  double worst_turns = 0;
  std::int64_t best_rows =
      0;  ///< rows in which no other has a better rank, by the rule of training scenarios
};

/// One for each of `labels`, which are those of the rows' cells.
std::vector<MatrixSummary> summarise(const std::vector<MatrixRow>& rows,
                                     const std::vector<std::string>& labels = matrix_labels());

}  // namespace vramlab
