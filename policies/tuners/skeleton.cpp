// `skeleton`: one step up after each period whose peak stayed below a bound, one down after a failed step.
// The policy to copy: docs/plugins.md.
#include "policies/builtins.hpp"
#include "policies/contract/policy.hpp"
#include "policies/tuners/period.hpp"

namespace vramlab {
namespace {

// What users may set, with the defaults.
struct SkeletonOptions {
  std::string parameter;
  double highest_usage = 0.85;
  std::int64_t adjustment_frequency = 10;
};

// One row an option: parsing, range checks, help and the schema of scenario files come from here.
const OptionTable<SkeletonOptions>& table() {
  using O = SkeletonOptions;
  static const OptionTable<O> rows{
      .owner = "skeleton",
      .options = {
          {"parameter", &O::parameter, "", 0, 0, kParameterHelp},
          {"highest_usage", &O::highest_usage, "ratio of the total", 0.01, 1,
           "a period whose peak is below it is followed by one step up"},
          {"adjustment_frequency", &O::adjustment_frequency, "steps", 1, 1e6, "length of a period"},
      }};
  return rows;
}

class Skeleton final : public Tuner {
 public:
  Skeleton(const SkeletonOptions& options, const ParameterSpace& space)
      : options_(options),
        index_(require_parameter(space, options.parameter, "skeleton")),
        name_(space.parameters[index_].name),
        period_(options.adjustment_frequency) {}

  // Asked after every step. What is answered is checked, applied and recorded by the host.
  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    period_.add(question, observation.memory);
    if (!period_.failed() && !period_.complete()) return {};
    TunerAnswer answer;
    answer.reset_peak = true;  // the next period has a peak of its own
    const std::string peak = "period peak " + fixed_point(period_.peak(), 3);
    const std::string bound = fixed_point(options_.highest_usage, 3);
    if (period_.failed()) {
      move(answer, question, -1, "oom: a step of the period failed");
    } else if (period_.peak() < options_.highest_usage) {
      move(answer, question, 1, peak + " is below " + bound);
    } else {
      answer.reason = peak + " is not below " + bound + ": no change";
    }
    period_.restart(observation.memory);
    return answer;
  }

 private:
  void move(TunerAnswer& answer, const TunerQuestion& question, std::int64_t delta,
            const std::string& why) const {
    answer.delta.assign(question.point.size(), 0);
    answer.delta[index_] = delta;
    answer.reason = why + ": " + name_ + " " + signed_number(delta);
  }

  SkeletonOptions options_;
  std::size_t index_;
  std::string name_;
  Period period_;
};

std::unique_ptr<Tuner> make(const OptionMap& options, const ParameterSpace& space) {
  return std::make_unique<Skeleton>(table().parse(options), space);
}

}  // namespace

TunerEntry skeleton_entry() {
  return {.name = "skeleton",
          .summary = "one step up while memory is below a bound, one down after a failed step; to be copied",
          .options = table().describe(),
          .profiles = {},
          .default_profile = {},
          .make = make};
}

}  // namespace vramlab
