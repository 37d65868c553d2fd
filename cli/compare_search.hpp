// The part of `compare` that speaks of searches for the largest batch.
#pragma once

#include "cli/comparison_question.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads the scenario. Throws InputError with everything wrong with it.
ReadyComparison ready_search_comparison(const ScenarioText& text, const ComparisonQuestion& question);

}  // namespace vramlab
