// The contract of all policies: they observe memory, are asked a question, and answer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/observation.hpp"

namespace vramlab {

/// One figure a policy keeps about itself, for results and tables.
struct Statistic {
  std::string name;
  double value = 0;
};

/// What every policy is: a pure state machine. It sees no clock, file, thread, device or JSON; equal
/// questions in equal order give equal answers, bit for bit.
class Policy {
 public:
  virtual ~Policy() = default;

  /// What the policy knows about itself now; empty by default.
  [[nodiscard]] virtual std::vector<Statistic> statistics() const { return {}; }

  /// What it knows, as text, for an equal policy to go on from after a restart; empty = it saves nothing.
  [[nodiscard]] virtual std::string save() const { return {}; }

  /// Goes on from what `save` of an equal policy gave: all later answers are as that one's would have been.
  /// Throws InputError for any other text.
  virtual void load(const std::string& text);
};

/// A policy of one family: `Question` and `Answer` are the family's own.
template <class Question, class Answer>
class Decider : public Policy {
 public:
  /// Answers `question` about the moment that `observation` describes. The host checks, applies and
  /// records the answer; a policy that asks for more than its bounds allow is clamped, not trusted.
  virtual Answer decide(const Question& question, const Observation& observation) = 0;
};

}  // namespace vramlab
