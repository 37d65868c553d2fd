#include "sim/workload/training_loop.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/engine/simulation.hpp"

namespace vramlab {
namespace {

// What can happen in a run. A step is performed when it begins and is looked at when it ends.
struct StepBegin {};
struct StepEnd {
  StepOutcome outcome;
  SimTime began{0};
};
struct OthersChange {
  std::size_t card = 0;
  std::int64_t bytes = 0;
};
using Event = std::variant<StepBegin, StepEnd, OthersChange>;

class TrainingLoop {
 public:
  TrainingLoop(const TrainingSetup& setup, std::unique_ptr<Tuner> tuner, CardsRule cards)
      : setup_(setup),
        cards_(cards),
        runner_(*setup.model, watched(setup), setup.make_performer),
        session_(std::move(tuner), setup.bounds, setup.bounds.clamp(setup.start)),
        others_(runner_.size()) {}

  TrainingRun run() {
    runner_.reset_peak();
    for (const OtherProcess& other : setup_.others) schedule_other(other);
    simulation_.schedule(SimTime{0}, StepBegin{});
    simulation_.run([&](Event event) { std::visit([&](auto& what) { handle(what); }, event); });
    if (setup_.watcher != nullptr) setup_.watcher->run_ends(runner_.card(0).allocator());
    run_.adjustments = session_.adjustments();
    run_.statistics = session_.tuner().statistics();
    run_.memory = counters();
    run_.duration = simulation_.now();
    run_.final_point = session_.point();
    return std::move(run_);
  }

 private:
  static std::vector<ProcessSetup> watched(const TrainingSetup& setup) {
    std::vector<ProcessSetup> cards = cards_of(setup);
    if (setup.watcher != nullptr) cards.front().listener = setup.watcher;
    return cards;
  }

  void schedule_other(const OtherProcess& other) {
    const auto bytes = static_cast<std::int64_t>(other.bytes);
    simulation_.schedule(other.from, OthersChange{other.card, bytes});
    if (other.to != SimTime::max()) simulation_.schedule(other.to, OthersChange{other.card, -bytes});
  }

  void handle(OthersChange& change) {
    others_[change.card] += change.bytes;
    runner_.card(change.card).set_others(static_cast<Bytes>(others_[change.card]));
  }

  void handle(StepBegin&) {
    if (!repeats_ && iteration_ == setup_.iterations) return finish();
    if (!repeats_) ++iteration_;
    if (setup_.watcher != nullptr) {
      setup_.watcher->step_begins(iteration_, session_.point(), simulation_.now());
    }
    const StepOutcome outcome = runner_.run(session_.point());
    note_peak(outcome);
    simulation_.schedule(outcome.duration, StepEnd{outcome, simulation_.now()});
  }

  Observation observe() const {
    std::vector<MemoryView> cards = runner_.views();
    Observation observation{iteration_, simulation_.now(), view_of_cards(cards, cards_)};
    if (cards.size() > 1) observation.cards = std::move(cards);
    return observation;
  }

  // The records keep the card that was fullest in the step, whatever the tuner looks at.
  const MemoryView& seen_in_step(const Observation& observation) const {
    return observation.cards.empty() ? observation.memory : observation.cards[runner_.fullest()];
  }

  // The fullest card's, with the failed and repeated allocations of all.
  MemoryStats counters() const {
    MemoryStats stats = runner_.card(runner_.fullest()).stats();
    stats.num_ooms = stats.num_alloc_retries = 0;
    for (std::size_t i = 0; i < runner_.size(); ++i) {
      stats.num_ooms += runner_.card(i).stats().num_ooms;
      stats.num_alloc_retries += runner_.card(i).stats().num_alloc_retries;
    }
    return stats;
  }

  void handle(StepEnd& end) {
    if (setup_.watcher != nullptr) setup_.watcher->step_ends(end.outcome.result, simulation_.now());
    const Observation observation = observe();
    IterationRecord record{.iteration = iteration_,
                           .start = end.began,
                           .duration = simulation_.now() - end.began,
                           .point = session_.point(),
                           .result = end.outcome.result,
                           .memory = seen_in_step(observation),
                           .step_peak_allocated = end.outcome.peak_allocated,
                           .step_peak_reserved = end.outcome.peak_reserved,
                           .delta = {},
                           .reason = {}};
    const StepDecision decision = session_.after_step(end.outcome.result, observation);
    record.reason = decision.reason;
    if (decision.moved) record.delta = difference(session_.point(), record.point);
    for (const std::string& line : decision.log) {
      run_.log.push_back("iteration " + std::to_string(iteration_) + ": " + line);
    }
    const SimTime delay = obey(decision);
    count_failures(record);
    run_.iterations.push_back(std::move(record));
    if (decision.end_run && run_.ended_early.empty()) run_.ended_early = decision.reason;
    if (!run_.ended_early.empty()) return finish();
    repeats_ = decision.retry && end.outcome.result == StepResult::oom;
    simulation_.schedule(delay + run_phases(), StepBegin{});
  }

  // Returns the time it took.
  SimTime obey(const StepDecision& decision) {
    SimTime taken{0};
    if (decision.empty_cache) taken = runner_.empty_cache();
    if (decision.reset_peak) runner_.reset_peak();
    return taken;
  }

  SimTime run_phases() {
    SimTime taken{0};
    if (repeats_) return taken;
    for (const Phase& phase : setup_.phases) {
      if (iteration_ % phase.every != 0) continue;
      const StepOutcome outcome = runner_.run(phase.point);
      note_peak(outcome);
      if (outcome.result == StepResult::oom) ++run_.phase_ooms;
      taken += outcome.duration;
    }
    return taken;
  }

  void note_peak(const StepOutcome& outcome) {
    run_.peak_allocated = std::max(run_.peak_allocated, outcome.peak_allocated);
    run_.peak_reserved = std::max(run_.peak_reserved, outcome.peak_reserved);
  }

  // No progress must not look like training.
  void count_failures(const IterationRecord& record) {
    const bool moved = !record.delta.empty();
    failures_in_a_row_ = record.result == StepResult::oom && !moved ? failures_in_a_row_ + 1 : 0;
    if (failures_in_a_row_ < kMostFailuresInARow) return;
    run_.ended_early = std::to_string(failures_in_a_row_) + " steps in a row ran out of memory at";
    for (std::size_t i = 0; i < record.point.size(); ++i) {
      run_.ended_early +=
          (i ? ", " : " ") + setup_.bounds.parameters[i].name + " " + std::to_string(record.point[i]);
    }
  }

  void finish() { simulation_.stop(); }

  static Point difference(const Point& to, const Point& from) {
    Point delta = to;
    for (std::size_t i = 0; i < delta.size(); ++i) delta[i] -= from[i];
    return delta;
  }

  const TrainingSetup& setup_;
  CardsRule cards_;
  CardsOf<StepPerformer> runner_;
  TunerSession session_;
  Simulation<Event> simulation_;
  TrainingRun run_;
  std::int64_t iteration_ = 0;
  std::vector<std::int64_t> others_;  // by card
  std::int64_t failures_in_a_row_ = 0;
  bool repeats_ = false;  // the step to begin is the failed one again
};

}  // namespace

std::vector<ProcessSetup> cards_of(const TrainingSetup& setup) {
  std::vector<ProcessSetup> cards{setup.process};
  cards.insert(cards.end(), setup.more_cards.begin(), setup.more_cards.end());
  return cards;
}

TrainingRun run_training(const TrainingSetup& setup, std::unique_ptr<Tuner> tuner, CardsRule cards) {
  return TrainingLoop{setup, std::move(tuner), cards}.run();
}

}  // namespace vramlab
