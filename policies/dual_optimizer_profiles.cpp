// The published versions of `dual-optimizer` as sets of option values, their defects included.
#include "policies/dual_optimizer_options.hpp"

namespace vramlab {
namespace {

// One overload a type: a literal would otherwise be ambiguous, or become the wrong one of them.
OptionEntry option(const char* key, bool flag) { return {key, flag, {}}; }
OptionEntry option(const char* key, double number) { return {key, number, {}}; }
OptionEntry option(const char* key, const char* name) { return {key, std::string(name), {}}; }
OptionEntry option(const char* key, int number) { return {key, std::int64_t{number}, {}}; }

// What both older versions have in common.
OptionMap older() {
  return {
      option("max_adjustments_counts", "recoveries"),
      option("hold_band", false),
      option("cooldown_after", "change"),
      option("peak_after_period", "keep"),
      option("lq_up_unit", 0.05),
      option("lq_up_factor", 1),
      option("area_check", false),
      option("batch_up_unit_from", "constant"),
      option("avoid_failing", false),
      option("oom_rule", "scale"),
      option("oom_factor", 0.5),
      option("oom_lq_multiple", 1),
      option("oom_empties_cache", false),
  };
}

OptionMap blind() {
  return overlay(older(), {
                              option("adjustment_frequency", 100),
                              option("usage_source", "allocated"),
                              option("warm_up", false),
                              option("lq_up_min_room", 0.05),
                              option("lq_up_at_least", 0),
                              option("lq_up_at_most", 2),
                              option("batch_up_min_room", 0.03),
                              option("batch_up_unit", 0.1),
                              option("batch_up_at_least", 0),
                              option("batch_up_at_most", 2),
                              option("batch_down", 1),
                              option("batch_down_far", 2),
                              option("lq_down", 1),
                              option("lq_down_far", 1),
                              option("log_lines", false),
                          });
}

OptionMap peak() {
  return overlay(older(), {
                              option("adjustment_frequency", 25),
                              option("usage_source", "peak"),
                              option("warm_up", true),
                              option("lq_up_min_room", 0.02),
                              option("lq_up_at_least", 2),
                              option("lq_up_at_most", 8),
                              option("batch_up_min_room", 0.01),
                              option("batch_up_unit", 0.03),
                              option("batch_up_at_least", 2),
                              option("batch_up_at_most", 8),
                              option("batch_down", 2),
                              option("batch_down_far", 4),
                              option("lq_down", 2),
                              option("lq_down_far", 4),
                              option("log_lines", true),
                          });
}

}  // namespace

const std::vector<TunerProfile>& dual_optimizer_profiles() {
  static const std::vector<TunerProfile> profiles = {
      {"blind", "as first published: reads what is allocated between steps, so it grows until a step fails",
       blind()},
      {"peak", "reads the peak, but never lets an old one go: from above the band it walks down to the floor",
       peak()},
      // The defaults of the options are this profile's values: nothing to set.
      {"settled", "a fresh peak every period, holds inside the band, remembers what failed", {}},
  };
  return profiles;
}

}  // namespace vramlab
