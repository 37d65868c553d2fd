// The part of `compare` that speaks of epochs over a data set.
#pragma once

#include "cli/comparison_question.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads the scenario. Throws InputError with everything wrong with it. What the monitor has to say goes to
/// folders of the trace folder.
ReadyComparison ready_epoch_comparison(const ScenarioText& text, const ComparisonQuestion& question);

}  // namespace vramlab
