// A scenario of kind `epoch`: a data set of mixed tasks on a card, the composers to try, and what must come
// out.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/fixed_choices.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/scenario.hpp"
#include "sim/runs/epoch_loop.hpp"

namespace vramlab {

/// The tuner beside a composer.
struct BatchTuner {
  PolicyChoice choice;
  BatchTuning tuning;  ///< without `make`
};

/// An epoch scenario, checked and ready to run.
struct EpochScenario : Scenario {
  std::shared_ptr<const BatchModel> model;
  std::shared_ptr<const BatchModel> checkpointed;               ///< null = none
  std::vector<std::shared_ptr<const BatchModel>> phase_models;  ///< of phases that have their own
  EpochSetup setup;                                             ///< refers to all of them
  std::int64_t restart_every = 0;  ///< batches after which the process ends and a new one goes on; 0 = never
  std::map<std::string, BatchTuner> tuners;  ///< by the label of the composer beside which they are
  std::string series_origin;       ///< "synthetic" or "measured" where losses are declared, else empty
  std::vector<std::string> notes;  ///< what had to be assumed or left out to read it
};

/// What one composer made of the data set.
struct EpochResult : PolicyFigures {
  EpochRun run;
  std::int64_t misfits = 0;            ///< samples of the data that fit nowhere, as far as anybody looked
  std::optional<OracleNote> oracle{};  ///< of the oracle: what it is
};

/// Reads a scenario of kind `epoch`. Throws InputError with every problem of the file.
EpochScenario read_epoch(const ScenarioDocument& document);

/// The keys of such a file.
const RecordBase& epoch_table();

/// Runs the composer of one entry; `listener` is told of every batch and may be null. After a restart
/// process and composer are new: all that they know is the state that was saved.
EpochResult run_composer(const EpochScenario& scenario, const PolicyEntry& entry,
                         BatchListener* listener = nullptr);

/// Runs the composers labelled so, all if there are none. Throws InputError for an unknown label.
std::vector<EpochResult> compare_composers(const EpochScenario& scenario,
                                           const std::vector<std::string>& labels = {});

/// The best fixed choice where a tuner moves a limit of the batches.
struct EpochOracle {
  PolicyEntry entry;                ///< its label is "oracle"
  std::optional<BatchTuner> limit;  ///< that stays; empty = the composer as it is
  OracleNote note;
};

/// Of the composers as they are and, in the place of each tuner, with a limit that stays (up to 193 values
/// over the tuner's range), the best by the rank of this kind among runs without OOM. Always on pretended
/// cards. Empty where no tuner is, nothing is safe, or steps of a real card would be compared with steps that
/// were never timed.
std::optional<EpochOracle> find_epoch_oracle(const EpochScenario& scenario, unsigned threads);

/// Gives each run its `regret` against that of the oracle.
void add_regrets(const EpochScenario& scenario, const EpochResult& oracle, std::vector<EpochResult>& results);

/// All metrics of a run in a fixed order (docs/metrics.md). `misfits`: samples of the data set that fit
/// nowhere, as far as anybody looked. Without times (`timed`) durations and rates are NaN. `regret` is there
/// only beside an `oracle`, the metrics of its run.
std::vector<Metric> epoch_metrics(const EpochSetup& setup, const EpochRun& run, std::int64_t misfits = 0,
                                  bool timed = true, const std::vector<Metric>* oracle = nullptr);
const MetricTable& epoch_metric_table();

/// Shares and errors of each task: of the data, of the samples trained on, of the gradient weight.
Json task_json(const EpochSetup& setup, const EpochRun& run);

Json epoch_json(const EpochScenario& scenario, const std::vector<EpochResult>& results);

}  // namespace vramlab
