#include "policies/predictive_options.hpp"

namespace vramlab {
namespace {

using O = PredictiveOptions;
constexpr const char* kRatio = "ratio of the total";

void check(const O& o, const OptionMap& map, std::vector<Problem>& problems) {
  if (o.target_vram_usage + o.safety_margin > 1) {
    problems.push_back(
        {place_of(map, {"safety_margin", "target_vram_usage"}),
         "target_vram_usage plus safety_margin is above 1: the band would end beyond the card."});
  }
}

}  // namespace

const OptionTable<PredictiveOptions>& predictive_table() {
  static const OptionTable<O> table{
      .owner = "predictive",
      .options =
          {
              {"target_vram_usage", &O::target_vram_usage, kRatio, 0.01, 1, "middle of the band"},
              {"safety_margin", &O::safety_margin, kRatio, 0, 0.5, "half the width of the band"},
              {"bound_at", choice_of<&O::bound_at>({"band", "target"}), "", 0, 0,
               "what a predicted peak's upper bound may reach: the upper end of the band, or the target"},
              {"adjustment_frequency", &O::adjustment_frequency, "steps", 1, 1e6,
               "steps between two looks at unchanged parameters; after a change the first look comes as soon "
               "as readings are steady"},
              {"objective", choice_of<&O::objective>({"lq-then-batch", "pixels_per_s", "samples_per_s"}), "",
               0, 0, "what is made as large as possible: batch times size squared a step, or a rate"},
              {"batch_parameter", &O::batch_parameter, "", 0, 0,
               "the parameter that counts samples; empty = batch, or the workload's first"},
              {"size_parameter", &O::size_parameter, "", 0, 0,
               "the parameter that says how large a sample is; empty = lq, or the next one, if there is one"},
              {"lq_granularity", &O::lq_granularity, "", 1, 4096, "the size is always a multiple of this"},
              {"confidence", &O::confidence, "standard deviations", 0, 10,
               "how far above what is expected the upper bound lies"},
              {"least_gain", &O::least_gain, "share of the objective", 0, 1, "a gain that is worth a change"},
              {"least_gain_to_turn", &O::least_gain_to_turn, "share of the objective", 0, 10,
               "the same for a change that turns a parameter round"},
              {"most_turns", &O::most_turns, "", 0, 1e6,
               "times that parameters may turn round; to use less memory they always may"},
              {"assumed_fragmentation", &O::assumed_fragmentation, "factor", 1, 3,
               "reserved over allocated at the peak, until readings tell"},
              {"max_adjustments", &O::max_adjustments, "", 0, 1e6,
               "changes in all; when they are used up, only an OOM changes anything"},
              {"oom_floor_limit", &O::oom_floor_limit, "steps", 1, 1e6,
               "failed steps in a row with nothing left to shrink after which the run ends"},
          },
      .check = check};
  return table;
}

}  // namespace vramlab
