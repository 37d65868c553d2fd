#include "policies/tuners/dual_optimizer_options.hpp"

namespace vramlab {
namespace {

constexpr const char* kRatio = "ratio of the total";
constexpr double kMany = 1e6;

// What to steer for, and when to look.
std::vector<Row<DualOptimizerOptions>> goal_rows() {
  using O = DualOptimizerOptions;
  return {
      {"enabled", &O::enabled, "", 0, 0, "false: never changes anything"},
      {"preset", one_of<&O::preset>({"none", "rtx-3060", "rtx-3080", "rtx-4090"}), "", 0, 0,
       "target and bounds recommended for a card; other options override them"},
      {"aggressive", &O::aggressive, "", 0, 0, "takes the upper end of the preset's target"},
      {"target_vram_usage", &O::target_vram_usage, kRatio, 0.01, 1, "usage to steer towards"},
      {"safety_margin", &O::safety_margin, kRatio, 0, 0.5,
       "grow below target - margin, shrink above target + margin"},
      {"adjustment_frequency", &O::adjustment_frequency, "steps", 1, kMany, "steps between two looks"},
      {"min_batch_size", &O::min_batch_size, "samples", 1, kMany, "smallest batch"},
      {"max_batch_size", &O::max_batch_size, "samples", 1, kMany, "largest batch"},
      {"min_lq_size", &O::min_lq_size, "pixels", 1, kMany, "smallest side of a low-quality patch"},
      {"max_lq_size", &O::max_lq_size, "pixels", 1, kMany, "largest side of a low-quality patch"},
      {"lq_granularity", &O::lq_granularity, "pixels", 1, 4096, "lq is always a multiple of this"},
      {"vram_history_size", &O::vram_history_size, "steps", 1, kMany, "readings kept for avg_usage"},
      {"max_adjustments", &O::max_adjustments, "", 0, kMany, "how many adjustments there may be"},
      {"max_adjustments_counts", one_of<&O::max_adjustments_counts>({"recoveries", "all"}), "", 0, 0,
       "recoveries: those after an OOM, then the next OOM ends the run; all: every one, then only an OOM "
       "changes anything"},
      {"usage_source", one_of<&O::usage_source>({"allocated", "peak"}), "", 0, 0,
       "usage is what is allocated after the step, or the device's peak counter"},
      {"warm_up", &O::warm_up, "", 0, 0, "no look before iteration adjustment_frequency"},
      {"hold_band", &O::hold_band, "", 0, 0, "no change while usage is closer to the target than the margin"},
      {"cooldown_after", one_of<&O::cooldown_after>({"change", "evaluation"}), "", 0, 0,
       "after what to wait for adjustment_frequency steps"},
      {"peak_after_period", one_of<&O::peak_after_period>({"keep", "reset"}), "", 0, 0,
       "keep: the device's counter is never reset, so an old peak survives a smaller step"},
  };
}

// How far to go up, and down.
std::vector<Row<DualOptimizerOptions>> step_rows() {
  using O = DualOptimizerOptions;
  return {
      {"lq_up_min_room", &O::lq_up_min_room, kRatio, 0, 1, "lq grows only if target - usage is above this"},
      {"lq_up_unit", &O::lq_up_unit, kRatio, 0.001, 1, "room for each lq_up_factor pixels"},
      {"lq_up_factor", &O::lq_up_factor, "pixels", 1, kMany, "pixels for each lq_up_unit of room"},
      {"lq_up_at_least", &O::lq_up_at_least, "pixels", 0, kMany, "smallest step up of lq"},
      {"lq_up_at_most", &O::lq_up_at_most, "pixels", 0, kMany, "largest step up of lq"},
      {"area_check", &O::area_check, "", 0, 0,
       "a step enlarged by lq_granularity is taken only if usage times the growth of the area stays within "
       "the target"},
      {"batch_up_min_room", &O::batch_up_min_room, kRatio, 0, 1,
       "batch grows (lq at its maximum) only if target - usage is above this"},
      {"batch_up_unit_from", one_of<&O::batch_up_unit_from>({"constant", "sample"}), "", 0, 0,
       "room for each further sample: batch_up_unit, or usage / batch times sample_headroom"},
      {"batch_up_unit", &O::batch_up_unit, kRatio, 0.001, 1, "room for each further sample (constant)"},
      {"sample_headroom", &O::sample_headroom, "factor", 1, 10,
       "spare room for each further sample (sample)"},
      {"batch_up_at_least", &O::batch_up_at_least, "samples", 0, kMany, "smallest step up of batch"},
      {"batch_up_at_most", &O::batch_up_at_most, "samples", 0, kMany, "largest step up of batch"},
      {"avoid_failing", &O::avoid_failing, "", 0, 0, "remembers pairs that failed and never grows to one"},
      {"failing_lq_distance", &O::failing_lq_distance, "pixels", 0, kMany,
       "lq stays this far below one that failed at the same or a smaller batch"},
      {"batch_down", &O::batch_down, "samples", 1, kMany, "step down of batch"},
      {"batch_down_far", &O::batch_down_far, "samples", 1, kMany,
       "the same when usage is far above the target"},
      {"batch_far", &O::batch_far, kRatio, 0, 1, "for batch, far is above target + this"},
      {"lq_down", &O::lq_down, "pixels", 1, kMany, "step down of lq (batch at its minimum)"},
      {"lq_down_far", &O::lq_down_far, "pixels", 1, kMany, "the same when usage is far above the target"},
      {"lq_far", &O::lq_far, kRatio, 0, 1, "for lq, far is above target + this"},
  };
}

// What to do after an OOM, and what to report.
std::vector<Row<DualOptimizerOptions>> recovery_rows() {
  using O = DualOptimizerOptions;
  return {
      {"oom_rule", one_of<&O::oom_rule>({"scale", "safe-pair"}), "", 0, 0,
       "scale: both parameters times oom_factor; safe-pair: the last safe pair if smaller, else the one "
       "moved last times oom_factor"},
      {"oom_factor", &O::oom_factor, "factor", 0.01, 0.99, "what is left of a parameter after an OOM"},
      {"oom_lq_multiple", &O::oom_lq_multiple, "pixels", 1, 4096,
       "lq is cut to a multiple of this after an OOM"},
      {"oom_cooldown_periods", &O::oom_cooldown_periods, "periods", 1, 1000,
       "no look for this many times adjustment_frequency steps after an OOM"},
      {"oom_empties_cache", &O::oom_empties_cache, "", 0, 0, "an OOM gives cached memory back first"},
      {"oom_ends_run", &O::oom_ends_run, "", 0, 0, "the first OOM ends the run, as published at first"},
      {"oom_double_halving", &O::oom_double_halving, "", 0, 0,
       "reproduces a defect: the tuner scales once more than the run does and goes on from its own figure"},
      {"retry_batch", &O::retry_batch, "", 0, 0, "runs the failed step again at once, at the new parameters"},
      {"phase_room", &O::phase_room, "", 0, 0,
       "a failed phase (validation) is taken note of: the cache is emptied before it, and batch and lq stay "
       "where one that grows with them fits; false: as published, phases are not heard of"},
      {"return_after_periods", &O::return_after_periods, "periods", 0, 1000,
       "a pair that ran well for this many periods for every step that failed there is gone back to when the "
       "cooldown is over: that step was an outlier; 0: as published, never"},
      {"oom_floor_limit", &O::oom_floor_limit, "steps", 1, kMany,
       "failed steps in a row with nothing left to shrink after which the run ends"},
      {"warning_usage", &O::warning_usage, kRatio, 0, 1,
       "warns when more than this is allocated after a step"},
      {"log_lines", &O::log_lines, "", 0, 0, "writes log lines (warnings are always written)"},
      {"log_interval", &O::log_interval, "steps", 1, kMany, "steps between two lines about usage"},
  };
}

template <class Number>
void require_order(const OptionMap& map, std::vector<Problem>& problems, const char* low_key, Number low,
                   const char* high_key, Number high) {
  if (low <= high) return;
  const auto text = [](Number number) { return format_option_value(static_cast<double>(number)); };
  problems.push_back(
      {place_of(map, {low_key, high_key}),
       std::string(low_key) + " " + text(low) + " is above " + high_key + " " + text(high) + "."});
}

void check(const DualOptimizerOptions& o, const OptionMap& map, std::vector<Problem>& problems) {
  require_order(map, problems, "min_batch_size", o.min_batch_size, "max_batch_size", o.max_batch_size);
  require_order(map, problems, "min_lq_size", o.min_lq_size, "max_lq_size", o.max_lq_size);
  require_order(map, problems, "lq_up_at_least", o.lq_up_at_least, "lq_up_at_most", o.lq_up_at_most);
  require_order(map, problems, "batch_up_at_least", o.batch_up_at_least, "batch_up_at_most",
                o.batch_up_at_most);
  require_order(map, problems, "safety_margin", o.safety_margin, "target_vram_usage", o.target_vram_usage);
  if (o.aggressive && o.preset == GpuPreset::none) {
    problems.push_back({place_of(map, {"aggressive"}),
                        "aggressive needs a preset. Name one: rtx-3060, rtx-3080, rtx-4090."});
  }
}

struct Preset {
  double target;      // lower end of the recommendation
  double aggressive;  // upper end
  std::int64_t min_lq, max_lq, min_batch, max_batch;
};

// In the order of GpuPreset, without none; published with the optimizer for 12, 10 and 24 GB.
constexpr Preset kPresets[] = {
    {0.80, 0.85, 32, 256, 2, 64},
    {0.75, 0.80, 32, 192, 2, 32},
    {0.85, 0.90, 64, 512, 4, 128},
};

}  // namespace

const OptionTable<DualOptimizerOptions>& dual_optimizer_table() {
  static const OptionTable<DualOptimizerOptions> table{
      .owner = "dual-optimizer",
      .options = Record<DualOptimizerOptions>(
          joined<DualOptimizerOptions>(goal_rows(), step_rows(), recovery_rows())),
      .check = check};
  return table;
}

DualOptimizerOptions parse_dual_optimizer(const OptionMap& map) {
  const auto& table = dual_optimizer_table();
  checked_values(map, table.describe(), table.owner);
  // The choice of a preset alone, so that a bound which only fits the preset's other bound is no error yet.
  OptionMap choice;
  for (const char* key : {"preset", "aggressive"}) {
    if (const OptionEntry* entry = map.find(key)) choice.set(entry->key, entry->value, entry->where);
  }
  const DualOptimizerOptions chosen = table.parse(choice);
  if (chosen.preset == GpuPreset::none) return table.parse(map);
  const Preset& preset = kPresets[static_cast<std::size_t>(chosen.preset) - 1];
  const std::string where = place_of(map, {"preset"});
  return table.parse(
      overlay({{"target_vram_usage", chosen.aggressive ? preset.aggressive : preset.target, where},
               {"min_lq_size", preset.min_lq, where},
               {"max_lq_size", preset.max_lq, where},
               {"min_batch_size", preset.min_batch, where},
               {"max_batch_size", preset.max_batch, where}},
              map));
}

namespace {

/// A value of both older versions.
struct Published {
  const char* key;
  OptionValue blind;
  OptionValue peak;
};

OptionMap published(OptionValue Published::*version) {
  static const Published kPublished[] = {
      {"max_adjustments_counts", "recoveries", "recoveries"},
      {"hold_band", false, false},
      {"cooldown_after", "change", "change"},
      {"peak_after_period", "keep", "keep"},
      {"lq_up_unit", 0.05, 0.05},
      {"lq_up_factor", 1, 1},
      {"area_check", false, false},
      {"batch_up_unit_from", "constant", "constant"},
      {"avoid_failing", false, false},
      {"oom_rule", "scale", "scale"},
      {"oom_factor", 0.5, 0.5},
      {"oom_lq_multiple", 1, 1},
      {"oom_empties_cache", false, false},
      {"phase_room", false, false},
      {"return_after_periods", 0, 0},
      {"adjustment_frequency", 100, 25},
      {"usage_source", "allocated", "peak"},
      {"warm_up", false, true},
      {"lq_up_min_room", 0.05, 0.02},
      {"lq_up_at_least", 0, 2},
      {"lq_up_at_most", 2, 8},
      {"batch_up_min_room", 0.03, 0.01},
      {"batch_up_unit", 0.1, 0.03},
      {"batch_up_at_least", 0, 2},
      {"batch_up_at_most", 2, 8},
      {"batch_down", 1, 2},
      {"batch_down_far", 2, 4},
      {"lq_down", 1, 2},
      {"lq_down_far", 1, 4},
      {"log_lines", false, true},
  };
  OptionMap options;
  for (const Published& one : kPublished) options.set(one.key, one.*version);
  return options;
}

}  // namespace

// The published versions as sets of option values, their defects included.
std::vector<PolicyProfile> dual_optimizer_profiles() {
  return {
      {"blind", "as first published: reads what is allocated between steps, so it grows until a step fails",
       published(&Published::blind)},
      {"peak", "reads the peak, but never lets an old one go: from above the band it walks down to the floor",
       published(&Published::peak)},
      // The defaults of the options are this profile's values: nothing to set.
      {"settled", "a fresh peak every period, holds inside the band, remembers what failed"},
  };
}

}  // namespace vramlab
