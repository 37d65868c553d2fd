// What happened around an expectation that does not hold, in a few lines.
#pragma once

#include <string>
#include <vector>

#include "lab/comparison.hpp"
#include "lab/jobs_scenario.hpp"

namespace vramlab {

/// The iterations around the event that the expectation is about: the failed step, the change, the highest
/// peak.
std::vector<std::string> iterations_around(const Expectation& expectation, const Scenario& scenario,
                                           const TrainingRun& run);

/// The jobs that did not complete, the first to end first; if all did, those that waited longest.
std::vector<std::string> jobs_to_look_at(const JobQueueSetup& setup, const JobQueueRun& run);

}  // namespace vramlab
