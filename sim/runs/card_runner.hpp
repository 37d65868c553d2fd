// Runs the steps of one workload on one card or on several, and keeps each card's counters.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/observation.hpp"
#include "sim/runs/step_runner.hpp"

namespace vramlab {

/// Makes what performs the steps of one process; empty = a StepRunner, on a pretended card.
using MakePerformer =
    std::function<std::unique_ptr<StepPerformer>(const WorkloadModel& model, const ProcessSetup& process)>;

/// One process a card, each a `Performer`. A step is over when it is over on every card, and fails if it
/// fails on one: all the others see it then. They have run it to its end; a real one would have been stopped
/// within it.
template <class Performer>
class CardsOf {
 public:
  /// One setup a card. Throws InputError if the model is made for another number of cards than one or than
  /// there are, if its weights do not fit, or for several cards that are not pretended.
  CardsOf(const WorkloadModel& model, std::span<const ProcessSetup> cards, const MakePerformer& make = {});

  /// A copy on every card, whose steps `run_program` is given; `built` is what each allocates first.
  CardsOf(const StepProgram& built,
          std::span<const ProcessSetup> cards) requires std::same_as<Performer, StepRunner>;

  /// Performs one step on all cards. Peaks and the failure are those of the card that was fullest in it;
  /// parts of a model take the sum of their times, whole copies the longest. `additions` are each card's:
  /// every process makes its own.
  StepOutcome run(const Point& point, const StepAdditions& additions = {});

  /// The same for a given step.
  StepOutcome run_program(const StepProgram& program, std::uint64_t shape,
                          const StepAdditions& additions) requires std::same_as<Performer, StepRunner>;

  /// Whether a step ran at `point` before.
  [[nodiscard]] bool knows(const Point& point) const { return performers_.front()->knows(point); }

  /// Number of that card; the failed one of a step that failed.
  [[nodiscard]] std::size_t fullest() const { return fullest_; }

  SimTime empty_cache();
  void reset_peak();
  SimTime forget_steps(bool held_stay = false) requires std::same_as<Performer, StepRunner>;

  [[nodiscard]] std::size_t size() const { return performers_.size(); }
  [[nodiscard]] Performer& card(std::size_t number) { return *performers_[number]; }
  [[nodiscard]] const Performer& card(std::size_t number) const { return *performers_[number]; }

  [[nodiscard]] std::vector<StepPerformer*> processes() const;

  /// What may be seen of each card.
  [[nodiscard]] std::vector<MemoryView> views() const;

 private:
  template <class Perform>
  StepOutcome on_all(const Perform& perform);
  [[nodiscard]] double share(std::size_t card, Bytes peak) const;

  bool in_turn_ = false;  ///< the cards hold parts of a model and work one after another
  std::vector<std::unique_ptr<Performer>> performers_;
  std::size_t fullest_ = 0;
};

/// Pretended cards.
using CardRunner = CardsOf<StepRunner>;

}  // namespace vramlab
