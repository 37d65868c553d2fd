#include "sim/runs/card_runner.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace vramlab {
namespace {

template <class Performer>
std::unique_ptr<Performer> make_performer(const WorkloadModel& model, const ProcessSetup& process,
                                          const MakePerformer& make) {
  if constexpr (std::same_as<Performer, StepPerformer>) {
    if (make) return make(model, process);
  }
  return std::make_unique<StepRunner>(model, process);
}

}  // namespace

template <class Performer>
CardsOf<Performer>::CardsOf(const WorkloadModel& model, std::span<const ProcessSetup> cards,
                            const MakePerformer& make)
    : in_turn_(model.cards() > 1) {
  if (cards.empty() || (model.cards() > 1 && model.cards() != cards.size())) {
    throw InputError("", "the model is split over " + std::to_string(model.cards()) +
                             " cards, and there are " + std::to_string(cards.size()) + ".");
  }
  if (make && cards.size() > 1) {
    throw InputError("", "a real card performs workloads of one card, and this one has " +
                             std::to_string(cards.size()) + ".");
  }
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const WorkloadModel& part = model.on_card(model.cards() > 1 ? i : 0);
    performers_.push_back(make_performer<Performer>(part, cards[i], make));
  }
}

template <class Performer>
CardsOf<Performer>::CardsOf(const StepProgram& built, std::span<const ProcessSetup> cards) requires
    std::same_as<Performer, StepRunner> {
  if constexpr (std::same_as<Performer, StepRunner>) {  // clang++ 14 makes this for every performer
    for (const ProcessSetup& card : cards) performers_.push_back(std::make_unique<StepRunner>(built, card));
  }
}

template <class Performer>
StepOutcome CardsOf<Performer>::run(const Point& point, const StepAdditions& additions) {
  return on_all([&](Performer& performer) { return performer.run(point, additions); });
}

template <class Performer>
StepOutcome CardsOf<Performer>::run_program(
    const StepProgram& program, std::uint64_t shape,
    const StepAdditions& additions) requires std::same_as<Performer, StepRunner> {
  if constexpr (std::same_as<Performer, StepRunner>) {
    return on_all([&](Performer& performer) { return performer.run_program(program, shape, additions); });
  }
  return {};
}

template <class Performer>
template <class Perform>
StepOutcome CardsOf<Performer>::on_all(const Perform& perform) {
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

template <class Performer>
double CardsOf<Performer>::share(std::size_t card, Bytes peak) const {
  return static_cast<double>(peak) / static_cast<double>(performers_[card]->view().total);
}

template <class Performer>
SimTime CardsOf<Performer>::empty_cache() {
  SimTime longest{0};
  for (const auto& performer : performers_) longest = std::max(longest, performer->empty_cache());
  return longest;
}

template <class Performer>
void CardsOf<Performer>::reset_peak() {
  for (const auto& performer : performers_) performer->reset_peak();
}

template <class Performer>
SimTime CardsOf<Performer>::forget_steps(bool held_stay) requires std::same_as<Performer, StepRunner> {
  SimTime longest{0};
  if constexpr (std::same_as<Performer, StepRunner>) {
    for (const auto& performer : performers_) longest = std::max(longest, performer->forget_steps(held_stay));
  }
  return longest;
}

template <class Performer>
std::vector<StepPerformer*> CardsOf<Performer>::processes() const {
  std::vector<StepPerformer*> processes;
  for (const auto& performer : performers_) processes.push_back(performer.get());
  return processes;
}

template <class Performer>
std::vector<MemoryView> CardsOf<Performer>::views() const {
  std::vector<MemoryView> views;
  for (const auto& performer : performers_) views.push_back(performer->view());
  return views;
}

template class CardsOf<StepRunner>;
template class CardsOf<StepPerformer>;

}  // namespace vramlab
