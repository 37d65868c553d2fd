// `aimd`: additive increase until memory is under pressure, multiplicative decrease when a step fails.
#include <algorithm>
#include <cmath>

#include "policies/builtins.hpp"
#include "policies/contract/policy.hpp"
#include "policies/tuners/period.hpp"

namespace vramlab {
namespace {

struct AimdOptions {
  std::string parameter;
  std::int64_t increase = 1;
  double decrease = 0.5;
  double pressure_usage = 0.90;
  bool retries_are_pressure = true;
  std::int64_t adjustment_frequency = 10;
};

const OptionTable<AimdOptions>& table() {
  using O = AimdOptions;
  static const OptionTable<O> rows{
      .owner = "aimd",
      .options = {
          {"parameter", &O::parameter, "", 0, 0, kParameterHelp},
          {"increase", &O::increase, "", 1, 1e6, "added after each period without pressure"},
          {"decrease", &O::decrease, "factor", 0.01, 0.99, "multiplies the parameter when a step fails"},
          {"pressure_usage", &O::pressure_usage, "ratio of the total", 0.01, 1,
           "a period peak from here on is pressure: nothing grows"},
          {"retries_are_pressure", &O::retries_are_pressure, "", 0, 0,
           "an allocation that had to flush the cache is pressure too"},
          {"adjustment_frequency", &O::adjustment_frequency, "steps", 1, 1e6,
           "length of a period; a failed step begins a new one"},
      }};
  return rows;
}

class Aimd final : public Tuner {
 public:
  Aimd(const AimdOptions& options, const ParameterSpace& space)
      : options_(options),
        index_(require_parameter(space, options.parameter, "aimd")),
        name_(space.parameters[index_].name),
        low_(space.parameters[index_].low),
        period_(options.adjustment_frequency) {}

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    period_.add(question, observation.memory);
    if (!period_.failed() && !period_.complete()) return {};
    TunerAnswer answer = period_.failed() ? back_off(question) : look(question);
    answer.reset_peak = true;
    period_.restart(observation.memory);
    return answer;
  }

 private:
  TunerAnswer back_off(const TunerQuestion& question) const {
    const std::int64_t now = question.point[index_];
    const auto scaled = static_cast<std::int64_t>(static_cast<double>(now) * options_.decrease);
    const std::int64_t next = std::min(now, std::max(low_, scaled));
    return move(question, next - now, "oom at " + name_ + " " + std::to_string(now));
  }

  TunerAnswer look(const TunerQuestion& question) const {
    const std::string peak = "period peak " + fixed_point(period_.peak(), 3);
    if (period_.peak() >= options_.pressure_usage) {
      return hold(peak + " has reached " + fixed_point(options_.pressure_usage, 3));
    }
    if (options_.retries_are_pressure && period_.retries() > 0) {
      return hold(std::to_string(period_.retries()) + " allocations of the period flushed the cache");
    }
    return move(question, options_.increase, peak + " is below " + fixed_point(options_.pressure_usage, 3));
  }

  static TunerAnswer hold(const std::string& why) {
    TunerAnswer answer;
    answer.reason = why + ": no change";
    return answer;
  }

  TunerAnswer move(const TunerQuestion& question, std::int64_t delta, const std::string& why) const {
    TunerAnswer answer;
    answer.delta.assign(question.point.size(), 0);
    answer.delta[index_] = delta;
    answer.reason = why + ": " + name_ + " " + signed_number(delta);
    return answer;
  }

  AimdOptions options_;
  std::size_t index_;
  std::string name_;
  std::int64_t low_;
  Period period_;
};

std::unique_ptr<Tuner> make(const OptionMap& options, const ParameterSpace& space) {
  return std::make_unique<Aimd>(table().parse(options), space);
}

}  // namespace

TunerEntry aimd_entry() {
  return {.name = "aimd",
          .summary = "adds one per period until memory is under pressure, halves when a step fails",
          .options = table().describe(),
          .profiles = {},
          .default_profile = {},
          .make = make};
}

}  // namespace vramlab
