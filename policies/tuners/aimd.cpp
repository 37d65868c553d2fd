// `aimd`: additive increase until memory is under pressure, multiplicative decrease when a step fails.
#include <algorithm>

#include "policies/tuners/one_parameter.hpp"

namespace vramlab {
namespace {

struct AimdOptions : OneParameterOptions {
  std::int64_t increase = 1;
  double decrease = 0.5;
  double pressure_usage = 0.90;
  bool retries_are_pressure = true;
};

const OptionTable<AimdOptions>& aimd_table() {
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

class Aimd final : public OneParameterTuner {
 public:
  Aimd(const AimdOptions& options, const ParameterSpace& space)
      : OneParameterTuner("aimd", options, space), options_(options) {}

 private:
  [[nodiscard]] Look look(const Period& period, std::int64_t now) const override {
    if (period.failed()) return back_off(now);
    const std::string peak = "period peak " + fixed_point(period.peak(), 3);
    const std::string pressure = fixed_point(options_.pressure_usage, 3);
    if (period.peak() >= options_.pressure_usage) return stay(peak + " has reached " + pressure);
    if (options_.retries_are_pressure && period.retries() > 0) {
      return stay(std::to_string(period.retries()) + " allocations of the period flushed the cache");
    }
    return move(options_.increase, peak + " is below " + pressure);
  }

  [[nodiscard]] Look back_off(std::int64_t now) const {
    const auto scaled = static_cast<std::int64_t>(static_cast<double>(now) * options_.decrease);
    const std::int64_t next = std::min(now, std::max(parameter().low, scaled));
    return move(next - now, "oom at " + parameter().name + " " + std::to_string(now));
  }

  AimdOptions options_;
};

}  // namespace

TunerEntry aimd_entry() {
  return {.name = "aimd",
          .summary = "adds one per period until memory is under pressure, halves when a step fails",
          .options = aimd_table().describe(),
          .make = maker<Aimd>(aimd_table())};
}

}  // namespace vramlab
