// Runs the steps of one workload on one card or on several, and keeps each card's counters.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "sim/core/card_views.hpp"
#include "sim/workload/step_runner.hpp"

namespace vramlab {

/// One process a card. A step is over when it is over on every card, and fails if it fails on one: all the
/// others see it then. They have run it to its end; a real one would have been stopped within it.
class CardRunner {
 public:
  /// One setup a card. Throws InputError if the model is made for another number of cards than one or than
  /// there are, or if its weights do not fit.
  CardRunner(const WorkloadModel& model, std::span<const ProcessSetup> cards);

  /// Performs one step on all cards. Peaks and the failure are those of the card that was fullest in it;
  /// parts of a model take the sum of their times, whole copies the longest.
  StepOutcome run(const Point& point);

  /// Number of that card; the failed one of a step that failed.
  [[nodiscard]] std::size_t fullest() const { return fullest_; }

  SimTime empty_cache();
  void reset_peak();
  SimTime forget_steps(bool held_stay = false);

  [[nodiscard]] std::size_t size() const { return runners_.size(); }
  [[nodiscard]] StepRunner& card(std::size_t number) { return runners_[number]; }
  [[nodiscard]] const StepRunner& card(std::size_t number) const { return runners_[number]; }

  /// What may be seen of each card.
  [[nodiscard]] std::vector<MemoryView> views() const;

 private:
  [[nodiscard]] double share(std::size_t card, Bytes peak) const;

  const WorkloadModel& model_;
  std::deque<StepRunner> runners_;  // they cannot move
  std::size_t fullest_ = 0;
};

}  // namespace vramlab
