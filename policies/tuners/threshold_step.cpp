// `threshold-step`: the rule people write by hand. Below the band one step up, above it one step down.
#include "policies/tuners/one_parameter.hpp"

namespace vramlab {
namespace {

struct ThresholdStepOptions : OneParameterOptions {
  std::int64_t step = 1;
  double target_vram_usage = 0.85;
  double safety_margin = 0.05;
};

const OptionTable<ThresholdStepOptions>& threshold_table() {
  using O = ThresholdStepOptions;
  static const OptionTable<O> rows{
      .owner = "threshold-step",
      .options = {
          {"parameter", &O::parameter, "", 0, 0, kParameterHelp},
          {"step", &O::step, "", 1, 1e6, "by how much it moves at a time"},
          {"target_vram_usage", &O::target_vram_usage, "ratio of the total", 0.01, 1, "middle of the band"},
          {"safety_margin", &O::safety_margin, "ratio of the total", 0, 0.5, "half the width of the band"},
          {"adjustment_frequency", &O::adjustment_frequency, "steps", 1, 1e6,
           "length of a period; one look at the end of each"},
      }};
  return rows;
}

class ThresholdStep final : public OneParameterTuner {
 public:
  ThresholdStep(const ThresholdStepOptions& options, const ParameterSpace& space)
      : OneParameterTuner("threshold-step", options, space, AfterFailure::look_at_the_end),
        options_(options) {}

 private:
  [[nodiscard]] Look look(const Period& period, std::int64_t) const override {
    // What was allocated when a step failed may well lie inside the band, but that step needed more.
    if (period.failed()) return move(-options_.step, "oom: a step of the period failed");
    const double low = options_.target_vram_usage - options_.safety_margin;
    const double high = options_.target_vram_usage + options_.safety_margin;
    const std::string band = fixed_point(low, 3) + " to " + fixed_point(high, 3);
    const std::string peak = "period peak " + fixed_point(period.peak(), 3);
    if (period.peak() > high) return move(-options_.step, peak + " is above the band " + band);
    if (period.peak() < low) return move(options_.step, peak + " is below the band " + band);
    return stay(peak + " is inside the band " + band);
  }

  ThresholdStepOptions options_;
};

}  // namespace

TunerEntry threshold_step_entry() {
  return {.name = "threshold-step",
          .summary = "one fixed step up below the band, one down above it",
          .options = threshold_table().describe(),
          .make = maker<ThresholdStep>(threshold_table())};
}

}  // namespace vramlab
