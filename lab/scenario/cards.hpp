// The parts of a scenario that say what runs where: cards, allocator, model, parameters.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/scenario/file.hpp"
#include "models/workload_model.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// The cards of a scenario.
struct ScenarioCards {
  std::string gpu;                   ///< name of the first, and how many more there are; for people
  std::vector<ProcessSetup> cards;   ///< "device", then those of "more_devices"
  std::vector<OtherProcess> others;  ///< on all of them
};

/// Reads "device", "more_devices" and "allocator" of a whole file; `file` is the scenario's.
ScenarioCards read_cards(const Json& json, const std::filesystem::path& file, FileProblems& problems);

/// The model of the object `workload` (its "model", spread over cards by its "layers"). Throws InputError;
/// `file` is the scenario's.
std::shared_ptr<const WorkloadModel> read_workload_model(const Json& workload,
                                                         const std::filesystem::path& file);

/// Index of the parameter `name`; empty, and a problem, if the workload has none.
std::optional<std::size_t> parameter_index(const ParameterSpace& space, const std::string& name,
                                           const std::string& pointer, FileProblems& problems);

/// Narrows `space` by an object of [low, high].
void read_bounds(const Json& bounds, const std::string& pointer, ParameterSpace& space,
                 FileProblems& problems);

/// A point of `space`. Missing values come from `base`; without it every parameter must be given.
Point read_point(const Json& values, const ParameterSpace& space, const std::string& pointer,
                 const Point* base, FileProblems& problems);

}  // namespace vramlab
