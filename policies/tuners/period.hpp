// The book-keeping of rules that look once in a fixed number of steps: how far, the peak, the retries, an
// OOM.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/contract/policy.hpp"
#include "policies/contract/tuner.hpp"

namespace vramlab {

/// What was seen since the last look. The rule asks for a reset of the device's peak counter at each look.
class Period {
 public:
  explicit Period(std::int64_t length) : length_(length) {}

  /// Notes one step.
  void add(const TunerQuestion& question, const MemoryView& memory) {
    ++steps_;
    peak_ = std::max(peak_, share_of_total(memory.peak_allocated, memory));
    failed_ = failed_ || question.result == StepResult::oom;
    retries_ = memory.alloc_retries - std::min(memory.alloc_retries, retries_before_);
  }

  /// Starts the next period after a reading of `memory`.
  void restart(const MemoryView& memory) {
    steps_ = 0;
    peak_ = 0;
    failed_ = false;
    retries_ = 0;
    retries_before_ = memory.alloc_retries;
  }

  [[nodiscard]] bool complete() const { return steps_ >= length_; }
  [[nodiscard]] double peak() const { return peak_; }               ///< highest usage, ratio of the total
  [[nodiscard]] bool failed() const { return failed_; }             ///< a step of it ended in OOM
  [[nodiscard]] std::uint64_t retries() const { return retries_; }  ///< allocations that flushed the cache

 private:
  std::int64_t length_;
  std::int64_t steps_ = 0;
  double peak_ = 0;
  bool failed_ = false;
  std::uint64_t retries_ = 0;
  std::uint64_t retries_before_ = 0;
};

/// Where no parameter is named: "batch", or the first one of a workload without it (counts of several tasks).
std::size_t default_parameter(const ParameterSpace& space);

/// Index of `parameter` in `space`, the default one where it is empty. Throws InputError, with the names
/// there are, if the workload has none.
std::size_t require_parameter(const ParameterSpace& space, const std::string& parameter,
                              const std::string& policy);

/// What users are told of the option that it comes from.
inline constexpr const char* kParameterHelp =
    "the parameter of the workload that is moved; empty = batch, or the workload's first";

}  // namespace vramlab
