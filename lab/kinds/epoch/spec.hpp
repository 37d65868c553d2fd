// A scenario of kind `epoch`: a data set of mixed tasks on a card, the composers to try, and what must come
// out.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

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

/// All metrics of a run in a fixed order (docs/metrics.md). `misfits`: samples of the data set that fit
/// nowhere, as far as anybody looked. Without times (`timed`) durations and rates are NaN.
std::vector<Metric> epoch_metrics(const EpochSetup& setup, const EpochRun& run, std::int64_t misfits = 0,
                                  bool timed = true);
const MetricTable& epoch_metric_table();

/// Shares and errors of each task: of the data, of the samples trained on, of the gradient weight.
Json task_json(const EpochSetup& setup, const EpochRun& run);

Json epoch_json(const EpochScenario& scenario, const std::vector<EpochResult>& results);

}  // namespace vramlab
