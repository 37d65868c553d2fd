// "batch_size": "auto_batch_size": the batch of a training scenario is found before it runs (P4.4).
#pragma once

#include "lab/json.hpp"
#include "lab/kinds/training/spec.hpp"
#include "lab/scenario/file.hpp"

namespace vramlab {

/// Searches the batch of `scenario` with the searcher that `workload` names, sets the start and the phases
/// that follow it, and says in `batch_note` how it was found. Throws InputError if no batch fits.
void find_batch_size(TrainingScenario& scenario, const Json& workload, FileProblems& problems);

}  // namespace vramlab
