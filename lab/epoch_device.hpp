// The card and the allocator settings of an epoch scenario.
#pragma once

#include "lab/epoch_scenario.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads "device" and "allocator" of `json` into `scenario`.
void read_epoch_device(const Json& json, EpochScenario& scenario, FileProblems& problems);

}  // namespace vramlab
