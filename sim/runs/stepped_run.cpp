#include "sim/runs/stepped_run.hpp"

#include <utility>

namespace vramlab {

std::string FailuresInARow::note(StepResult result, bool moved, const Point& ran,
                                 const ParameterSpace& space) {
  count_ = result == StepResult::oom && !moved ? count_ + 1 : 0;
  if (count_ < kMostFailuresInARow) return {};
  std::string reason = std::to_string(count_) + " steps in a row ran out of memory at";
  for (std::size_t i = 0; i < ran.size(); ++i) {
    reason += (i ? ", " : " ") + space.parameters[i].name + " " + std::to_string(ran[i]);
  }
  return reason;
}

// What is there already has its memory before the first step.
SteppedRun::SteppedRun(const Faults& faults, const std::vector<OtherProcess>& others, SimTime start)
    : faults_(faults), simulation_(start), readings_(faults) {
  for (const auto& [from, to, size, card] : others) {
    if (to <= start) continue;
    const auto bytes = static_cast<std::int64_t>(size);
    if (from <= start) {
      wanted_of(card) += bytes;
    } else {
      simulation_.schedule(from - start, OthersChange{card, bytes});
    }
    if (to != SimTime::max()) simulation_.schedule(to - start, OthersChange{card, -bytes});
  }
}

std::int64_t& SteppedRun::wanted_of(std::size_t card) {
  if (card >= others_wanted_.size()) others_wanted_.resize(card + 1);
  return others_wanted_[card];
}

void SteppedRun::run_events() {
  begin_after(SimTime{0});
  simulation_.run([&](const auto& event) { std::visit([&](const auto& what) { handle(what); }, event); });
}

void SteppedRun::handle(const OthersChange& change) {
  wanted_of(change.card) += change.bytes;
  const auto wanted = static_cast<Bytes>(others_wanted_[change.card]);
  for (StepPerformer* process : processes_[change.card]) process->set_others(wanted);
}

void SteppedRun::start_processes(const std::vector<StepPerformer*>& cards) {
  processes_.assign(cards.size(), {});
  add_processes(cards);
  fault_counts_.leaked = 0;
  process_is_new_ = true;
}

void SteppedRun::add_processes(const std::vector<StepPerformer*>& cards) {
  for (std::size_t card = 0; card < cards.size(); ++card) {
    processes_[card].push_back(cards[card]);
    cards[card]->set_others(static_cast<Bytes>(wanted_of(card)));
  }
}

StepOutcome SteppedRun::with_faults(std::int64_t number, const StepAdditions& additions,
                                    StepOutcome outcome) {
  const bool failed = outcome.result == StepResult::oom;
  if (additions.besides > 0) {
    ++fault_counts_.heavy_steps;
    if (failed) ++fault_counts_.heavy_ooms;
  }
  if (failed) return outcome;
  fault_counts_.leaked += faults_.left_behind(number, false);
  process_is_new_ = false;
  if (faults_.has_error(number)) outcome.result = StepResult::error;
  return outcome;
}

const Observation& SteppedRun::deliver(Observation now) {
  const Observation& seen = readings_.deliver(std::move(now));
  if (seen.reading < seen.iteration) ++fault_counts_.missing_readings;
  return seen;
}

void PolicyReadings::restart(Observation first) {
  readings_.clear();
  reading_ = std::move(first);
  after_phase_ = false;
  new_process_ = true;
}

const Observation& PolicyReadings::deliver(Observation now) {
  const std::int64_t iteration = now.iteration;
  const SimTime time = now.time;
  now.reading = iteration;
  now.after_phase = std::exchange(after_phase_, false);
  readings_.push_back(std::move(now));
  if (std::cmp_greater(readings_.size(), faults_.reading_delay)) {
    if (!faults_.reading_is_missing(iteration)) reading_ = std::move(readings_.front());
    readings_.pop_front();
  }
  reading_.iteration = iteration;
  reading_.time = time;
  reading_.new_process = std::exchange(new_process_, false);
  return reading_;
}

}  // namespace vramlab
