// What the rules share that look once a period and move one parameter: the books of the period, which
// parameter it is, and the sentence that says what was done.
#pragma once

#include <cstdint>
#include <string>

#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// What was seen since the last look.
class Period {
 public:
  explicit Period(std::int64_t length) : length_(length) {}

  /// Notes one step.
  void add(const TunerQuestion& question, const MemoryView& memory);

  /// Starts the next period after a reading of `memory`.
  void restart(const MemoryView& memory);

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

/// The options that all such rules have; those of a rule are derived from them.
struct OneParameterOptions {
  std::string parameter;                   ///< that is moved; empty = the default one
  std::int64_t adjustment_frequency = 10;  ///< steps of a period
};

/// What users are told of `parameter`.
inline constexpr const char* kParameterHelp =
    "the parameter of the workload that is moved; empty = batch, or the workload's first";

/// A rule that looks at the end of each period at what was seen, and may move its parameter. The device's
/// peak counter is reset at each look, so that the next period has a peak of its own.
class OneParameterTuner : public Tuner {
 public:
  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) final;

 protected:
  enum class AfterFailure : std::uint8_t { look_at_once, look_at_the_end };

  /// Throws InputError if `space` lacks the parameter; `policy` is the name that users know.
  OneParameterTuner(const char* policy, const OneParameterOptions& options, const ParameterSpace& space,
                    AfterFailure after_failure = AfterFailure::look_at_once);

  /// What a look found: the reason, with the figures it rests on, and the change of the parameter.
  struct Look {
    std::string why;
    std::int64_t change = 0;
    bool moves = true;
  };
  static Look move(std::int64_t change, std::string why) { return {std::move(why), change, true}; }
  static Look stay(std::string why) { return {std::move(why), 0, false}; }

  /// The rule. `now` is the parameter's value.
  [[nodiscard]] virtual Look look(const Period& period, std::int64_t now) const = 0;

  [[nodiscard]] const Parameter& parameter() const { return parameter_; }

 private:
  std::size_t index_;
  Parameter parameter_;
  Period period_;
  AfterFailure after_failure_;
};

/// Index of `parameter` in `space`; where it is empty that of "batch", or of the first one of a workload
/// without it (counts of several tasks). Throws InputError, with the names there are, if the workload has
/// none.
std::size_t require_parameter(const ParameterSpace& space, const std::string& parameter,
                              const std::string& policy);

}  // namespace vramlab
