// Runs the steps of one workload on one card, real or pretended, or on several, and keeps their counters.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/observation.hpp"
#include "sim/runs/step_runner.hpp"

namespace vramlab {

/// Makes what performs the steps of one process on the run's card number `card`; empty = a StepRunner, on a
/// pretended card.
using MakePerformer = std::function<std::unique_ptr<StepPerformer>(
    const ProcessWork& work, const ProcessSetup& process, std::size_t card)>;

/// One process a card. A step is over when it is over on every card, and fails if it fails on one: all the
/// others see it then. They have run it to its end; a real one would have been stopped within it.
class CardRunner {
 public:
  /// One setup a card. Throws InputError if the model is made for another number of cards than one or than
  /// there are, and if its weights do not fit.
  CardRunner(const WorkloadModel& model, std::span<const ProcessSetup> cards, const MakePerformer& make = {})
      : in_turn_(model.cards() > 1) {
    if (cards.empty() || (in_turn_ && model.cards() != cards.size())) {
      throw InputError("", "the model is split over " + std::to_string(model.cards()) +
                               " cards, and there are " + std::to_string(cards.size()) + ".");
    }
    for (std::size_t i = 0; i < cards.size(); ++i) {
      const WorkloadModel& part = model.on_card(in_turn_ ? i : 0);
      add({part.build(), &part}, cards, i, make);
    }
  }

  /// A copy on every card, whose steps `run_program` is given; `built` is what each allocates first.
  CardRunner(const StepProgram& built, std::span<const ProcessSetup> cards, const MakePerformer& make = {}) {
    for (std::size_t i = 0; i < cards.size(); ++i) add({built}, cards, i, make);
  }

  /// Performs one step on all cards. Peaks and the failure are those of the card that was fullest in it;
  /// parts of a model take the sum of their times, whole copies the longest. `additions` are each card's:
  /// every process makes its own.
  StepOutcome run(const Point& point, const StepAdditions& additions = {}) {
    return on_all([&](StepPerformer& performer) { return performer.run(point, additions); });
  }

  /// The same for a given step.
  StepOutcome run_program(const StepProgram& program, std::uint64_t shape, const StepAdditions& additions) {
    return on_all([&](StepPerformer& performer) { return performer.run_program(program, shape, additions); });
  }

  /// Whether a step ran at `point` before.
  [[nodiscard]] bool knows(const Point& point) const { return performers_.front()->knows(point); }

  /// Number of that card; the failed one of a step that failed.
  [[nodiscard]] std::size_t fullest() const { return fullest_; }

  SimTime empty_cache() {
    return longest([](StepPerformer& performer) { return performer.empty_cache(); });
  }
  void reset_peak() {
    for (const auto& performer : performers_) performer->reset_peak();
  }
  SimTime forget_steps(bool held_stay) {
    return longest([&](StepPerformer& performer) { return performer.forget_steps(held_stay); });
  }

  [[nodiscard]] std::size_t size() const { return performers_.size(); }
  [[nodiscard]] StepPerformer& card(std::size_t number) { return *performers_[number]; }
  [[nodiscard]] const StepPerformer& card(std::size_t number) const { return *performers_[number]; }

  [[nodiscard]] std::vector<StepPerformer*> processes() const {
    std::vector<StepPerformer*> processes;
    for (const auto& performer : performers_) processes.push_back(performer.get());
    return processes;
  }

  /// What may be seen of each card.
  [[nodiscard]] std::vector<MemoryView> views() const {
    std::vector<MemoryView> views;
    for (const auto& performer : performers_) views.push_back(performer->view());
    return views;
  }

  /// What can be read after step `iteration`, with the memory that `rule` says.
  [[nodiscard]] Observation read(std::int64_t iteration, SimTime now, CardsRule rule) const {
    return reading_of(views(), iteration, now, rule);
  }

 private:
  void add(const ProcessWork& work, std::span<const ProcessSetup> cards, std::size_t number,
           const MakePerformer& make) {
    performers_.push_back(make ? make(work, cards[number], number)
                               : std::make_unique<StepRunner>(work, cards[number]));
  }

  template <class Perform>
  StepOutcome on_all(const Perform& perform) {
    StepOutcome whole = perform(*performers_.front());
    fullest_ = 0;
    for (std::size_t i = 1; i < performers_.size(); ++i) {
      const StepOutcome step = perform(*performers_[i]);
      const SimTime duration =
          in_turn_ ? whole.duration + step.duration : std::max(whole.duration, step.duration);
      const bool worse = step.result != whole.result
                             ? step.result == StepResult::oom
                             : share(i, step.peak_allocated) > share(fullest_, whole.peak_allocated);
      if (worse) {
        whole = step;
        fullest_ = i;
      }
      whole.duration = duration;
    }
    return whole;
  }

  template <class Work>
  SimTime longest(const Work& work) {
    SimTime time{0};
    for (const auto& performer : performers_) time = std::max(time, work(*performer));
    return time;
  }

  [[nodiscard]] double share(std::size_t card, Bytes peak) const {
    return static_cast<double>(peak) / static_cast<double>(performers_[card]->view().total);
  }

  bool in_turn_ = false;  ///< the cards hold parts of a model and work one after another
  std::vector<std::unique_ptr<StepPerformer>> performers_;
  std::size_t fullest_ = 0;
};

}  // namespace vramlab
