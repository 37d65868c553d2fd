// `skeleton`: one step up after each period whose peak stayed below a bound, one down after a failed step.
// The policy to copy: docs/plugins.md.
#include "policies/tuners/one_parameter.hpp"

namespace vramlab {
namespace {

// What users may set, with the defaults.
struct SkeletonOptions : OneParameterOptions {
  double highest_usage = 0.85;
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

class Skeleton final : public OneParameterTuner {
 public:
  Skeleton(const SkeletonOptions& options, const ParameterSpace& space)
      : OneParameterTuner("skeleton", options, space), options_(options) {}

 private:
  // Asked at the end of each period, and after a failed step. The host checks, applies and records the
  // change.
  [[nodiscard]] Look look(const Period& period, std::int64_t) const override {
    if (period.failed()) return move(-1, "oom: a step of the period failed");
    const std::string peak = "period peak " + fixed_point(period.peak(), 3);
    const std::string bound = fixed_point(options_.highest_usage, 3);
    if (period.peak() < options_.highest_usage) return move(1, peak + " is below " + bound);
    return stay(peak + " is not below " + bound);
  }

  SkeletonOptions options_;
};

}  // namespace

TunerEntry skeleton_entry() {
  return {.name = "skeleton",
          .summary = "one step up while memory is below a bound, one down after a failed step; to be copied",
          .options = table().describe(),
          .make = maker<Skeleton>(table())};
}

}  // namespace vramlab
