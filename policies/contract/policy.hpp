// The contract of all policies: they observe memory, are asked a question, and answer with a reason.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "core/observation.hpp"

namespace vramlab {

/// One figure a policy keeps about itself, for results and tables.
struct Statistic {
  std::string name;
  double value = 0;
};

/// A policy that cannot be asked any further: it failed, or answered what no answer can be. It ends that
/// policy's run, with `what()` as the reason, and nothing else.
class PolicyFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What every policy is: a pure state machine. It sees no clock, file, thread, device or JSON; equal
/// questions in equal order give equal answers, bit for bit.
class Policy {
 public:
  virtual ~Policy() = default;

  /// What the policy knows about itself now; empty by default.
  [[nodiscard]] virtual std::vector<Statistic> statistics() const { return {}; }
};

/// A policy of one family: `Question` and `Answer` are the family's own.
template <class QuestionOfFamily, class AnswerOfFamily>
class Decider : public Policy {
 public:
  using Question = QuestionOfFamily;
  using Answer = AnswerOfFamily;

  /// Answers `question` about the moment that `observation` describes. The host checks, applies and
  /// records the answer; a policy that asks for more than its bounds allow is clamped, not trusted.
  virtual Answer decide(const Question& question, const Observation& observation) = 0;
};

// Figures as they appear in reasons and log lines.

/// `value` with `decimals` digits after the point, independent of the locale: "0.747".
inline std::string fixed_point(double value, int decimals) {
  std::array<char, 400> text{};  // the largest double has 309 digits before its point
  const auto [end, fault] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return fault == std::errc{} ? std::string(text.data(), end) : "?";
}

/// With its sign: "+2", "-4", "+0".
inline std::string signed_number(std::int64_t value) {
  return (value < 0 ? "" : "+") + std::to_string(value);
}

/// `part` of `memory.total` as a ratio. `memory.total` must not be 0.
inline double share_of_total(Bytes part, const MemoryView& memory) {
  return static_cast<double>(part) / static_cast<double>(memory.total);
}

}  // namespace vramlab
