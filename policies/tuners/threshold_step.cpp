// `threshold-step`: the rule people write by hand. Below the band one step up, above it one step down.
#include "policies/builtins.hpp"
#include "policies/contract/policy.hpp"
#include "policies/tuners/period.hpp"

namespace vramlab {
namespace {

struct ThresholdStepOptions {
  std::string parameter;
  std::int64_t step = 1;
  double target_vram_usage = 0.85;
  double safety_margin = 0.05;
  std::int64_t adjustment_frequency = 10;
};

const OptionTable<ThresholdStepOptions>& table() {
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

class ThresholdStep final : public Tuner {
 public:
  ThresholdStep(const ThresholdStepOptions& options, const ParameterSpace& space)
      : options_(options),
        index_(require_parameter(space, options.parameter, "threshold-step")),
        name_(space.parameters[index_].name),
        period_(options.adjustment_frequency) {}

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    period_.add(question, observation.memory);
    if (!period_.complete()) return {};
    TunerAnswer answer = look(question);
    period_.restart(observation.memory);
    return answer;
  }

 private:
  TunerAnswer look(const TunerQuestion& question) const {
    const double low = options_.target_vram_usage - options_.safety_margin;
    const double high = options_.target_vram_usage + options_.safety_margin;
    const std::string band = fixed_point(low, 3) + " to " + fixed_point(high, 3);
    const std::string peak = "period peak " + fixed_point(period_.peak(), 3);
    TunerAnswer answer;
    answer.reset_peak = true;
    // What was allocated when a step failed may well lie inside the band, but that step needed more.
    if (period_.failed()) {
      move(answer, question, -options_.step, "oom: a step of the period failed");
    } else if (period_.peak() > high) {
      move(answer, question, -options_.step, peak + " is above the band " + band);
    } else if (period_.peak() < low) {
      move(answer, question, options_.step, peak + " is below the band " + band);
    } else {
      answer.reason = peak + " is inside the band " + band + ": no change";
    }
    return answer;
  }

  void move(TunerAnswer& answer, const TunerQuestion& question, std::int64_t delta,
            const std::string& why) const {
    answer.delta.assign(question.point.size(), 0);
    answer.delta[index_] = delta;
    answer.reason = why + ": " + name_ + " " + signed_number(delta);
  }

  ThresholdStepOptions options_;
  std::size_t index_;
  std::string name_;
  Period period_;
};

std::unique_ptr<Tuner> make(const OptionMap& options, const ParameterSpace& space) {
  return std::make_unique<ThresholdStep>(table().parse(options), space);
}

}  // namespace

TunerEntry threshold_step_entry() {
  return {.name = "threshold-step",
          .summary = "one fixed step up below the band, one down above it",
          .options = table().describe(),
          .profiles = {},
          .default_profile = {},
          .make = make};
}

}  // namespace vramlab
