#include "sim/runs/training_loop.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <variant>

#include "core/error.hpp"
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
  TrainingLoop(const TrainingSetup& setup, const TunerMaker& make_tuner, CardsRule cards)
      : setup_(setup),
        faults_(setup.faults),
        make_tuner_(make_tuner),
        cards_(cards),
        others_(1 + setup.more_cards.size()) {
    if (setup.watcher != nullptr && faults_.restart.after > 0) {
      throw InputError("", "a run that restarts cannot be recorded: a history is that of one process.");
    }
    if (setup.make_performer && faults_.worst_addition(setup.iterations) > 0) {
      throw InputError("", "faults that add memory to a step are simulated only; run without --device cuda.");
    }
    start_process();
  }

  TrainingRun run() {
    for (const OtherProcess& other : setup_.others) schedule_other(other);
    simulation_.schedule(SimTime{0}, StepBegin{});
    simulation_.run([&](Event event) { std::visit([&](auto& what) { handle(what); }, event); });
    if (setup_.watcher != nullptr) setup_.watcher->run_ends(runner_->card(0).allocator());
    append(run_.adjustments, session_->adjustments());
    run_.statistics = session_->tuner().statistics();
    add_counters();
    run_.duration = simulation_.now();
    run_.final_point = session_->point();
    return std::move(run_);
  }

 private:
  static std::vector<ProcessSetup> watched(const TrainingSetup& setup) {
    std::vector<ProcessSetup> cards = cards_of(setup);
    if (setup.watcher != nullptr) cards.front().listener = setup.watcher;
    return cards;
  }

  // A new process, and a session that goes on from what was saved with the checkpoint.
  void start_process() {
    if (session_) {
      replace_session();
    } else {
      session_.emplace(new_session());
    }
    runner_.emplace(*setup_.model, watched(setup_), setup_.make_performer);
    for (std::size_t card = 0; card < runner_->size(); ++card) set_others(card);
    totals_.clear();
    for (const MemoryView& card : runner_->views()) totals_.push_back(card.total);
    runner_->reset_peak();
    after_phase_ = false;
    reading_ = read_memory();
    readings_.clear();
    if (faults_.apply_delay > 0) {
      waiting_.assign(static_cast<std::size_t>(faults_.apply_delay) + 1, session_->point());
    }
    run_.faults.leaked = 0;
    process_is_new_ = true;
    tuner_sees_new_process_ = true;
  }

  [[nodiscard]] TunerSession new_session() const {
    return {make_tuner_(), setup_.bounds, setup_.bounds.clamp(setup_.start)};
  }

  // A tuner that cannot go on ends the run; the books stay those of the session before.
  void replace_session() {
    try {
      TunerSession next = new_session();
      if (!saved_.empty()) next.load(saved_);
      append(run_.adjustments, session_->adjustments());
      session_.emplace(std::move(next));
    } catch (const PolicyFault& fault) {
      run_.ended_early = fault.what();
    } catch (const InputError& error) {
      run_.ended_early = "the policy could not go on after the restart: " + error.problems().front().what;
    }
  }

  template <class Item>
  static void append(std::vector<Item>& list, const std::vector<Item>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  void set_others(std::size_t card) { runner_->card(card).set_others(static_cast<Bytes>(others_[card])); }

  // The fullest card's, with the failed and repeated allocations of all. The counters of a process end with
  // it; those of events add up over a run.
  void add_counters() {
    std::int64_t ooms = run_.memory.num_ooms;
    std::int64_t retries = run_.memory.num_alloc_retries;
    for (std::size_t card = 0; card < runner_->size(); ++card) {
      ooms += runner_->card(card).stats().num_ooms;
      retries += runner_->card(card).stats().num_alloc_retries;
    }
    run_.memory = runner_->card(runner_->fullest()).stats();
    run_.memory.num_ooms = ooms;
    run_.memory.num_alloc_retries = retries;
  }

  void schedule_other(const OtherProcess& other) {
    const auto bytes = static_cast<std::int64_t>(other.bytes);
    simulation_.schedule(other.from, OthersChange{other.card, bytes});
    if (other.to != SimTime::max()) simulation_.schedule(other.to, OthersChange{other.card, -bytes});
  }

  void handle(OthersChange& change) {
    others_[change.card] += change.bytes;
    set_others(change.card);
  }

  void handle(StepBegin&) {
    const bool is_done = !repeats_ && iteration_ == setup_.iterations;
    if (is_done || !run_.ended_early.empty()) return finish();
    if (!repeats_) ++iteration_;
    if (setup_.watcher != nullptr) {
      setup_.watcher->step_begins(iteration_, fetched_point(), simulation_.now());
    }
    const StepOutcome outcome = run_step(fetched_point());
    simulation_.schedule(outcome.duration, StepEnd{outcome, simulation_.now()});
  }

  // What can be read now.
  Observation read_memory() const {
    std::vector<MemoryView> cards = runner_->views();
    Observation now{.iteration = iteration_,
                    .time = simulation_.now(),
                    .memory = view_of_cards(cards, cards_),
                    .reading = iteration_,
                    .after_phase = after_phase_};
    if (cards.size() > 1) now.cards = std::move(cards);
    return now;
  }

  // The records keep the card that was fullest in the step, whatever the tuner looks at.
  const MemoryView& seen_in_step(const Observation& now) const {
    return now.cards.empty() ? now.memory : now.cards[runner_->fullest()];
  }

  StepOutcome run_step(const Point& point) {
    const bool new_parameters = !runner_->knows(point);
    const StepAdditions additions{faults_.needed_besides(iteration_, new_parameters),
                                  faults_.left_behind(iteration_, process_is_new_)};
    StepOutcome outcome = runner_->run(point, additions);
    note_peak(outcome);
    const bool failed = outcome.result == StepResult::oom;
    if (additions.besides > 0) {
      ++run_.faults.heavy_steps;
      if (failed) ++run_.faults.heavy_ooms;
    }
    if (!failed) {
      run_.faults.leaked += faults_.left_behind(iteration_, false);
      process_is_new_ = false;
      if (faults_.has_error(iteration_)) outcome.result = StepResult::error;
    }
    if (point != session_->point()) ++run_.faults.late_changes;
    return outcome;
  }

  // What the step to begin runs at.
  [[nodiscard]] const Point& fetched_point() const {
    return waiting_.empty() ? session_->point() : waiting_.front();
  }

  // Batches are fetched `apply_delay` steps ahead, at the parameters of that moment; the first of them is
  // that of the step at work. A failed step that is repeated gets a new one.
  void fetch() {
    if (waiting_.empty()) return;
    if (repeats_) {
      waiting_.front() = session_->point();
      return;
    }
    waiting_.pop_front();
    waiting_.push_back(session_->point());
  }

  void handle(StepEnd& end) {
    if (setup_.watcher != nullptr) setup_.watcher->step_ends(end.outcome.result, simulation_.now());
    Observation now = read_memory();
    const Point ran = fetched_point();
    const Point before = session_->point();
    IterationRecord record{.iteration = iteration_,
                           .start = end.began,
                           .duration = simulation_.now() - end.began,
                           .point = ran,
                           .result = end.outcome.result,
                           .memory = seen_in_step(now),
                           .step_peak_allocated = end.outcome.peak_allocated,
                           .step_peak_reserved = end.outcome.peak_reserved,
                           .delta = {},
                           .reason = {}};
    const StepDecision decision = session_->after_step(end.outcome.result, deliver(std::move(now)), ran);
    record.reason = decision.reason;
    if (decision.moved) record.delta = difference(session_->point(), before);
    for (const std::string& line : decision.log) {
      run_.log.push_back("iteration " + std::to_string(iteration_) + ": " + line);
    }
    const SimTime delay = obey(decision);
    count_failures(record);
    run_.iterations.push_back(std::move(record));
    if (decision.end_run && run_.ended_early.empty()) run_.ended_early = decision.reason;
    repeats_ = decision.retry && end.outcome.result == StepResult::oom;
    if (run_.ended_early.empty() && !repeats_ && iteration_ == faults_.restart.checkpoint()) save_session();
    if (!run_.ended_early.empty()) return finish();
    fetch();
    const SimTime phases = run_phases();
    simulation_.schedule(delay + phases + restart(), StepBegin{});
  }

  // What the policy sees: the reading of some steps ago, or the last one again where one is missing.
  const Observation& deliver(Observation now) {
    readings_.push_back(std::move(now));
    after_phase_ = false;
    const bool arrives = std::cmp_greater(readings_.size(), faults_.reading_delay);
    if (arrives) {
      if (!faults_.reading_is_missing(iteration_)) reading_ = readings_.front();
      readings_.pop_front();
    }
    reading_.iteration = iteration_;
    reading_.time = simulation_.now();
    reading_.new_process = std::exchange(tuner_sees_new_process_, false);
    if (reading_.reading < iteration_) ++run_.faults.missing_readings;
    return reading_;
  }

  // Of all checkpoints only the one that the restart goes back to matters.
  void save_session() {
    try {
      saved_ = session_->save();
    } catch (const PolicyFault& fault) {
      run_.ended_early = fault.what();
    }
  }

  // Returns the time until the new process runs its first step.
  SimTime restart() {
    const Restart& plan = faults_.restart;
    if (plan.after == 0 || restarted_ || repeats_ || iteration_ < plan.after) return SimTime{0};
    restarted_ = true;
    iteration_ = plan.checkpoint();
    for (IterationRecord& record : run_.iterations) record.kept = record.iteration <= iteration_;
    add_counters();
    start_process();
    return plan.takes;
  }

  // Returns the time it took.
  SimTime obey(const StepDecision& decision) {
    SimTime taken{0};
    if (decision.empty_cache) taken = runner_->empty_cache();
    if (decision.reset_peak) runner_->reset_peak();
    return taken;
  }

  SimTime run_phases() {
    SimTime taken{0};
    if (repeats_) return taken;
    for (const Phase& phase : setup_.phases) {
      if (iteration_ % phase.every != 0) continue;
      const StepOutcome outcome = runner_->run(phase.point);
      note_peak(outcome);
      after_phase_ = true;
      if (outcome.result == StepResult::oom) ++run_.phase_ooms;
      taken += outcome.duration;
    }
    run_.phase_time += taken;
    return taken;
  }

  void note_peak(const StepOutcome& outcome) {
    const Bytes total = totals_[runner_->fullest()];
    run_.peak_allocated.note(outcome.peak_allocated, total);
    run_.peak_reserved.note(outcome.peak_reserved, total);
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
  const Faults& faults_;
  const TunerMaker& make_tuner_;
  CardsRule cards_;
  std::optional<CardsOf<StepPerformer>> runner_;  // of the processes that run now, one a card
  std::vector<Bytes> totals_;                     // by card
  std::optional<TunerSession> session_;
  Simulation<Event> simulation_;
  TrainingRun run_;
  std::int64_t iteration_ = 0;
  std::vector<std::int64_t> others_;  // by card
  std::int64_t failures_in_a_row_ = 0;
  bool repeats_ = false;              // the step to begin is the failed one again
  std::deque<Point> waiting_;         // what fetched batches run at, the next one first; empty without delay
  std::deque<Observation> readings_;  // on their way to the policy
  Observation reading_;               // the last one that arrived
  bool after_phase_ = false;
  bool process_is_new_ = true;          // until a step of it has succeeded
  bool tuner_sees_new_process_ = true;  // until the tuner was asked
  bool restarted_ = false;
  std::string saved_;  // by the session, with the checkpoint
};

}  // namespace

std::vector<ProcessSetup> cards_of(const TrainingSetup& setup) {
  std::vector<ProcessSetup> cards{setup.process};
  cards.insert(cards.end(), setup.more_cards.begin(), setup.more_cards.end());
  return cards;
}

TrainingRun run_training(const TrainingSetup& setup, const TunerMaker& make_tuner, CardsRule cards) {
  return TrainingLoop{setup, make_tuner, cards}.run();
}

TrainingRun run_training(const TrainingSetup& setup, std::unique_ptr<Tuner> tuner, CardsRule cards) {
  const TunerMaker only_once = [&tuner] {
    if (!tuner) throw InternalError("a run that restarts needs a maker of tuners");
    return std::move(tuner);
  };
  return run_training(setup, only_once, cards);
}

}  // namespace vramlab
