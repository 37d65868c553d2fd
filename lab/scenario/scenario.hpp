// What scenarios of every kind have: a name, a seed, the policies to try and what must come out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/contract/policy_set.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// One policy of a scenario.
struct PolicyEntry {
  std::string label;  ///< unique within the scenario
  TunerChoice choice;
  CardsRule cards = CardsRule::fullest;  ///< what it sees of several cards
};

/// Something that must hold for the run of one policy.
struct Expectation {
  enum class Subject : std::uint8_t {
    metric,
    final_value,  ///< of a parameter after the last step
    adjustment,   ///< iteration of a change, or with a name that parameter's value after it
    oom           ///< iteration of a failed step
  };
  std::string policy;  ///< a label, or "oracle"
  Subject subject = Subject::metric;
  std::string name;         ///< of the metric, or of the parameter
  std::int64_t number = 1;  ///< which change or failed step, from 1
  std::string mark;         ///< kind snapshot: the mark at which; empty = at the end
  std::string relative_to;  ///< label of the run whose figure this one is divided by; empty = none
  double share = 1;         ///< of the seeds' runs, how many must hold
  std::optional<double> min;
  std::optional<double> max;
  std::optional<double> equals;
  double tolerance = 0;  ///< around `equals`
};

/// A scenario, checked and ready to run; a kind adds what is its own.
struct Scenario {
  std::string file;  ///< as it was named
  std::string name;
  std::string description;
  std::uint64_t seed = 1;
  std::string gpu;  ///< name of the card, for people; empty where the kind names none
  std::shared_ptr<const PolicySet> known = builtin_policies();  ///< where its policies are found; never null
  std::vector<PolicyEntry> policies;
  std::vector<Expectation> expectations;
};

}  // namespace vramlab
