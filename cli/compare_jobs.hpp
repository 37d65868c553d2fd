// The part of `compare` that speaks of jobs on shared cards.
#pragma once

#include "cli/comparison_question.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads the scenario. Throws InputError with everything wrong with it, and for several seeds where nothing
/// of it is drawn.
ReadyComparison ready_jobs_comparison(const ScenarioText& text, const ComparisonQuestion& question);

}  // namespace vramlab
