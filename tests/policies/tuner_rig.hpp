// What the tests of tuners share: a workload's parameters, and steps with a usage made up by the test.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policies/contract/policy_set.hpp"
#include "policies/contract/session.hpp"

namespace vramlab {

constexpr Bytes kRigTotal = 1'000'000;  // so that a usage of 0.747 is a whole number of bytes

inline ParameterSpace batch_and_lq() { return {{{"batch", 1, 512}, {"lq", 8, 1024}}}; }
inline ParameterSpace batch_only() { return {{{"batch", 1, 512}}}; }

inline OptionMap with_frequency(std::int64_t frequency, const OptionMap& more = {}) {
  return overlay({{"adjustment_frequency", frequency, {}}}, more);
}

// One session, stepped with usages. Unlike a device it does not keep a running peak: a test says every
// figure.
class Rig {
 public:
  Rig(const std::string& use, const std::string& profile, const OptionMap& options, Point start,
      ParameterSpace space = batch_and_lq())
      : session_(builtin_policies()->tuners.make({use, profile, options, "/policies/0"}, space), space,
                 std::move(start)) {}

  StepDecision step(double peak, double allocated = 0.03, std::uint64_t retries = 0) {
    return run(StepResult::ok, peak, allocated, retries);
  }
  StepDecision oom(double peak = 0.9) { return run(StepResult::oom, peak, 0.03, 0); }

  // `count` equal steps; the decision of the last.
  StepDecision steps(int count, double peak, double allocated = 0.03) {
    StepDecision last;
    for (int i = 0; i < count; ++i) last = step(peak, allocated);
    return last;
  }

  [[nodiscard]] const Point& point() const { return session_.point(); }
  [[nodiscard]] std::int64_t iteration() const { return iteration_; }
  TunerSession& session() { return session_; }

  [[nodiscard]] double statistic(const std::string& name) const {
    for (const Statistic& statistic : session_.tuner().statistics()) {
      if (statistic.name == name) return statistic.value;
    }
    return -1;
  }

 private:
  static Bytes bytes(double ratio) {
    return static_cast<Bytes>(ratio * static_cast<double>(kRigTotal) + 0.5);
  }

  StepDecision run(StepResult result, double peak, double allocated, std::uint64_t retries) {
    ++iteration_;
    const MemoryView memory{.allocated = bytes(allocated),
                            .peak_allocated = bytes(peak),
                            .reserved = bytes(peak),
                            .peak_reserved = bytes(peak),
                            .total = kRigTotal,
                            .alloc_retries = retries};
    return session_.after_step(result, {iteration_, std::chrono::seconds(iteration_), memory, iteration_});
  }

  TunerSession session_;
  std::int64_t iteration_ = 0;
};

}  // namespace vramlab
