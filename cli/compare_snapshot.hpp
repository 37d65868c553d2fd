// The part of `compare` that speaks of a program replayed under several settings and cards.
#pragma once

#include "cli/comparison_question.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

/// Reads the scenario. Throws InputError with everything wrong with it. The labels asked for are those of
/// rows.
ReadyComparison ready_snapshot_comparison(const ScenarioText& text, const ComparisonQuestion& question);

}  // namespace vramlab
