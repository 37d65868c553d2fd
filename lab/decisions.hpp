// What policies decide about a scenario on a real card, beside what they decide on pretended ones.
#pragma once

#include <string>
#include <vector>

#include "lab/experiment.hpp"

namespace vramlab {

/// One policy on both sides.
struct DecisionsAgreement {
  std::string label;
  std::size_t lines = 0;  ///< decisions of the longer list
  std::size_t equal = 0;  ///< that stand at the same place of both
  std::string on_card;    ///< the first that differ; empty where a list had ended
  std::string simulated;

  [[nodiscard]] bool agrees() const { return lines == equal; }
};

/// A scenario that is read twice, for a card and for pretended ones, before either runs.
class ScenarioOnBoth {
 public:
  /// Throws InputError as read_experiment does, and for a scenario with a sweep.
  ScenarioOnBoth(const ScenarioDocument& document, const Question& on_card);

  /// Runs every policy on the card, then on pretended cards. Throws InputError for what only a run shows.
  void run();

  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] const std::string& name() const { return card_->scenario().name; }
  /// In the order of the file.
  [[nodiscard]] const std::vector<DecisionsAgreement>& policies() const { return policies_; }
  [[nodiscard]] bool agrees() const;

 private:
  std::string kind_;
  std::unique_ptr<Experiment> card_;
  std::unique_ptr<Experiment> simulated_;
  std::vector<DecisionsAgreement> policies_;
};

/// A row each: family, scenario, policies and decisions that are alike.
Table decisions_table(const std::vector<ScenarioOnBoth>& all);

/// For each policy that decided otherwise: where first, a line.
std::vector<std::string> decision_differences(const std::vector<ScenarioOnBoth>& all);

/// "kind", "scenario", "agrees" and "policies", each with "label", "decisions", "equal" and, where they part,
/// "first_difference" with "card" and "simulated".
Json decisions_json(const std::vector<ScenarioOnBoth>& all);

/// What policies of that kind of scenario are called: "tuners", "queue policies".
std::string family_name(const std::string& kind);

}  // namespace vramlab
