// The options of `dual-optimizer`: every rule of its profiles is one of them, and YAML files name them too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// Cards with a ready-made target and bounds.
enum class GpuPreset : std::uint8_t { none, rtx_3060, rtx_3080, rtx_4090 };

/// Which adjustments `max_adjustments` counts.
enum class AdjustmentCount : std::uint8_t {
  recoveries,  ///< only those after an OOM: when they are used up, the next OOM ends the run
  all          ///< every change: when they are used up, only an OOM still changes anything
};

/// What the usage is read from, after the step.
enum class UsageSource : std::uint8_t {
  allocated,  ///< bytes allocated then; activations are gone by that time
  peak        ///< the device's peak counter
};

/// After what the tuner waits for `adjustment_frequency` steps.
enum class CooldownAfter : std::uint8_t { change, evaluation };

/// The period peak once a period is over.
enum class PeakAfterPeriod : std::uint8_t {
  keep,  ///< the device's counter goes on, so its old peak survives
  reset  ///< counter and period peak start anew
};

/// How the size of a batch step follows from the room below the target.
enum class BatchUnit : std::uint8_t {
  constant,  ///< one for every `batch_up_unit` of room
  sample     ///< one for every share that a sample of the current batch takes, times `sample_headroom`
};

/// Where to go after a failed step.
enum class OomRule : std::uint8_t {
  scale,     ///< both parameters × `oom_factor`
  safe_pair  ///< the last safe pair if smaller, else the parameter moved last × `oom_factor`
};

/// Sizes of growth: clamp(factor × int(room / unit), at_least, at_most), if room is above `min_room`.
/// Ratios are shares of the total memory. The defaults of everything are those of the profile `settled`.
struct DualOptimizerOptions {
  bool enabled = true;
  GpuPreset preset = GpuPreset::none;
  bool aggressive = false;

  double target_vram_usage = 0.85;
  double safety_margin = 0.05;
  std::int64_t adjustment_frequency = 25;
  std::int64_t min_batch_size = 2;
  std::int64_t max_batch_size = 64;
  std::int64_t min_lq_size = 32;
  std::int64_t max_lq_size = 256;
  std::int64_t lq_granularity = 1;
  std::int64_t vram_history_size = 50;
  std::int64_t max_adjustments = 100;
  AdjustmentCount max_adjustments_counts = AdjustmentCount::recoveries;

  UsageSource usage_source = UsageSource::peak;
  bool warm_up = true;
  bool hold_band = true;
  CooldownAfter cooldown_after = CooldownAfter::evaluation;
  PeakAfterPeriod peak_after_period = PeakAfterPeriod::reset;

  double lq_up_min_room = 0.05;
  double lq_up_unit = 0.10;
  std::int64_t lq_up_factor = 2;
  std::int64_t lq_up_at_least = 2;
  std::int64_t lq_up_at_most = 4;
  bool area_check = true;

  double batch_up_min_room = 0.05;
  BatchUnit batch_up_unit_from = BatchUnit::sample;
  double batch_up_unit = 0.03;
  double sample_headroom = 1.1;
  std::int64_t batch_up_at_least = 0;
  std::int64_t batch_up_at_most = 2;

  bool avoid_failing = true;
  std::int64_t failing_lq_distance = 2;

  std::int64_t batch_down = 2;
  std::int64_t batch_down_far = 4;
  double batch_far = 0.10;
  std::int64_t lq_down = 2;
  std::int64_t lq_down_far = 4;
  double lq_far = 0.15;

  OomRule oom_rule = OomRule::safe_pair;
  double oom_factor = 0.75;
  std::int64_t oom_lq_multiple = 4;
  std::int64_t oom_cooldown_periods = 2;
  bool oom_empties_cache = true;
  bool oom_ends_run = false;
  bool oom_double_halving = false;
  bool retry_batch = false;
  bool phase_room = true;
  std::int64_t return_after_periods = 4;
  std::int64_t oom_floor_limit = 10;

  double warning_usage = 0.95;
  bool log_lines = true;
  std::int64_t log_interval = 50;
};

/// The table of these options.
const OptionTable<DualOptimizerOptions>& dual_optimizer_table();

/// `map` as options: a preset's values lie below those of `map`. Throws InputError with every problem.
DualOptimizerOptions parse_dual_optimizer(const OptionMap& map);

/// `blind`, `peak` and `settled`, in the order in which they were published.
std::vector<PolicyProfile> dual_optimizer_profiles();

// Reads the options of `dual-optimizer` out of a training framework's YAML file.

/// The options in `text`, the content of `file` (for messages only):
///
///     training_automations:
///       enabled: true
///       DynamicBatchSizeOptimizer: {enabled: true, target_vram_usage: 0.85, …}
///
/// Everything else in the file is left alone. `enabled: false` at either level gives `enabled: false`.
/// The place of each option is "FILE:LINE". Throws InputError for text that is not YAML, for a file without
/// that section, for values that are not scalars and for keys given twice; unknown keys and ranges are
/// checked where the options are used.
OptionMap read_dual_optimizer_yaml(const std::string& text, const std::string& file);

/// The same from a file on disk. Throws InputError if it cannot be read.
OptionMap load_dual_optimizer_yaml(const std::string& file);

}  // namespace vramlab
