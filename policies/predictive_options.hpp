// The options of `predictive`.
#pragma once

#include <cstdint>
#include <string>

#include "policies/option_table.hpp"
#include "sim/core/parameter_space.hpp"

namespace vramlab {

/// What counts as work done, as a scenario states it (P5).
enum class WorkGoal : std::uint8_t { lq_then_batch, pixels_per_s, samples_per_s };

/// Up to where a prediction's upper bound may reach.
enum class BoundAt : std::uint8_t { band, target };

struct PredictiveOptions {
  double target_vram_usage = 0.85;
  double safety_margin = 0.05;
  BoundAt bound_at = BoundAt::band;
  std::int64_t adjustment_frequency = 25;
  WorkGoal objective = WorkGoal::lq_then_batch;
  std::string batch_parameter;
  std::string size_parameter;
  std::int64_t lq_granularity = 1;
  double confidence = 2;
  double least_gain = 0.01;
  double least_gain_to_turn = 0.02;
  std::int64_t most_turns = 2;
  double assumed_fragmentation = 1.08;
  std::int64_t max_adjustments = 100;
  std::int64_t oom_floor_limit = 5;
};

/// The table of these options.
const OptionTable<PredictiveOptions>& predictive_table();

}  // namespace vramlab
