#include "sim/workload/card_runner.hpp"

#include <algorithm>
#include <string>

#include "sim/core/error.hpp"

namespace vramlab {

CardRunner::CardRunner(const WorkloadModel& model, std::span<const ProcessSetup> cards) : model_(model) {
  if (cards.empty() || (model.cards() > 1 && model.cards() != cards.size())) {
    throw InputError("", "the model is split over " + std::to_string(model.cards()) +
                             " cards, and there are " + std::to_string(cards.size()) + ".");
  }
  for (std::size_t i = 0; i < cards.size(); ++i) {
    runners_.emplace_back(model.on_card(model.cards() > 1 ? i : 0), cards[i]);
  }
}

StepOutcome CardRunner::run(const Point& point) {
  StepOutcome whole = runners_.front().run(point);
  fullest_ = 0;
  for (std::size_t i = 1; i < runners_.size(); ++i) {
    const StepOutcome step = runners_[i].run(point);
    const SimTime duration =
        model_.cards() > 1 ? whole.duration + step.duration : std::max(whole.duration, step.duration);
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

double CardRunner::share(std::size_t card, Bytes peak) const {
  return static_cast<double>(peak) / static_cast<double>(runners_[card].view().total);
}

SimTime CardRunner::empty_cache() {
  SimTime longest{0};
  for (StepRunner& runner : runners_) longest = std::max(longest, runner.empty_cache());
  return longest;
}

void CardRunner::reset_peak() {
  for (StepRunner& runner : runners_) runner.reset_peak();
}

SimTime CardRunner::forget_steps(bool held_stay) {
  SimTime longest{0};
  for (StepRunner& runner : runners_) longest = std::max(longest, runner.forget_steps(held_stay));
  return longest;
}

std::vector<MemoryView> CardRunner::views() const {
  std::vector<MemoryView> views;
  for (const StepRunner& runner : runners_) views.push_back(runner.view());
  return views;
}

}  // namespace vramlab
