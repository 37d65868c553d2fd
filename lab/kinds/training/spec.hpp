// A scenario of kind `training`: a workload on a card, the policies to try on it, and what must come out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/scenario/file.hpp"
#include "lab/scenario/scenario.hpp"
#include "models/workload_model.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// What counts as work done. All are sums over the steps that did not fail.
enum class Objective : std::uint8_t {
  pixels,        ///< samples × pixels of a sample, whatever time it took
  pixels_per_s,  ///< the same per second, so that time lost counts
  samples_per_s,
  lq_first,      ///< the size of a sample, then the batch: mean over the planned steps, as published
  lq_then_batch  ///< the former name of `pixels`, in files only
};

/// The usage a scenario aims at, as shares of the total.
struct Target {
  double usage = 0.85;
  double margin = 0.05;
};

/// A training scenario, checked and ready to run.
struct TrainingScenario : Scenario {
  Objective objective = Objective::pixels;
  Target target;
  std::shared_ptr<const WorkloadModel> model;
  TrainingSetup setup;             ///< `setup.model` is `model`
  std::vector<std::string> notes;  ///< how the batch was found, where the file left it to a searcher
};

/// Reads a scenario of kind `training`. Throws InputError with every problem of the file, each with its JSON
/// pointer.
TrainingScenario read_training(const ScenarioDocument& document);

/// The moved phase and the parameter that "validation.batch" names: places in `setup.moved_phases` and in a
/// point. Empty if it names none.
std::optional<std::pair<std::size_t, std::size_t>> find_moved_parameter(const TrainingSetup& setup,
                                                                        const std::string& name);

/// The keys of such a file.
const RecordBase& training_table();

/// "pixels", "pixels_per_s", "samples_per_s", "lq-first", "lq-then-batch", in the order of `Objective`.
const std::vector<std::string>& objective_names();
std::string objective_name(Objective objective);

}  // namespace vramlab
