#include "sim/runs/training_loop.hpp"

#include <deque>
#include <optional>
#include <utility>

#include "core/error.hpp"

namespace vramlab {
namespace {

class TrainingLoop final : private SteppedRun {
 public:
  TrainingLoop(const TrainingSetup& setup, const TunerMaker& make_tuner, CardsRule cards)
      : SteppedRun(setup.faults, setup.others, setup.begins),
        setup_(setup),
        faults_(setup.faults),
        make_tuner_(make_tuner),
        cards_(cards),
        moved_(setup.moved_phases.size()) {
    run_.phase_adjustments.resize(moved_.size());
    if (setup.watcher != nullptr && faults_.restart.after > 0) {
      throw InputError("", "a run that restarts cannot be recorded: a history is that of one process.");
    }
    start_process();
  }

  TrainingRun run() {
    run_events();
    if (setup_.watcher != nullptr) setup_.watcher->run_ends(runner_->card(0).allocator());
    keep_adjustments();
    run_.statistics = session_->tuner().statistics();
    add_counters();
    run_.phases = phase_counts_;
    run_.faults = fault_counts_;
    run_.duration = now();
    run_.final_point = session_->point();
    for (const Moved& moved : moved_) run_.phase_points.push_back(moved.session->point());
    return std::move(run_);
  }

 private:
  // A new process, and a session that goes on from what was saved with the checkpoint.
  void start_process() {
    if (session_) {
      replace_session();
    } else {
      session_.emplace(new_session());
    }
    for (std::size_t i = 0; i < moved_.size(); ++i) {
      const auto& [phase, bounds, make_tuner] = setup_.moved_phases[i];
      moved_[i] = {};
      moved_[i].session.emplace(make_tuner(), bounds, setup_.phases[phase].point);
    }
    std::vector<ProcessSetup> cards = cards_of(setup_);
    if (setup_.watcher != nullptr) cards.front().listener = setup_.watcher;
    runner_.emplace(*setup_.model, cards, setup_.make_performer);
    start_processes(runner_->processes());
    totals_.clear();
    for (const MemoryView& card : runner_->views()) totals_.push_back(card.total);
    runner_->reset_peak();
    restart_readings(runner_->read(iteration_, now(), cards_));
    if (faults_.apply_delay > 0) {
      waiting_.assign(static_cast<std::size_t>(faults_.apply_delay) + 1, session_->point());
    }
  }

  [[nodiscard]] TunerSession new_session() const {
    return {make_tuner_(), setup_.bounds, setup_.bounds.clamp(setup_.start)};
  }

  // A tuner that cannot go on ends the run; the books stay those of the session before.
  void replace_session() {
    try {
      TunerSession next = new_session();
      if (!saved_.empty()) next.load(saved_);
      keep_adjustments();
      session_.emplace(std::move(next));
    } catch (const PolicyFault& fault) {
      run_.ended_early = fault.what();
    } catch (const InputError& error) {
      run_.ended_early = "the policy could not go on after the restart: " + error.problems().front().what;
    }
  }

  void keep_adjustments() {
    const std::vector<Adjustment>& made = session_->adjustments();
    run_.adjustments.insert(run_.adjustments.end(), made.begin(), made.end());
  }

  // The fullest card's, with the failed and repeated allocations of all. The counters of a process end with
  // it; those of events add up over a run.
  void add_counters() {
    const MemoryView all = view_of_cards(runner_->views(), CardsRule::sum);
    const std::int64_t ooms = run_.memory.num_ooms + static_cast<std::int64_t>(all.allocator_ooms);
    const std::int64_t retries = run_.memory.num_alloc_retries + static_cast<std::int64_t>(all.alloc_retries);
    run_.memory = runner_->card(runner_->fullest()).stats();
    run_.memory.num_ooms = ooms;
    run_.memory.num_alloc_retries = retries;
  }

  void begin_step() override {
    const bool is_done = !repeats_ && iteration_ == setup_.iterations;
    if (is_done || !run_.ended_early.empty()) return stop();
    if (!repeats_) ++iteration_;
    const Point& point = fetched_point();
    if (setup_.watcher != nullptr) setup_.watcher->step_begins(iteration_, point, now());
    began_ = now();
    step_ = perform_step(iteration_, !runner_->knows(point),
                         [&](const StepAdditions& additions) { return runner_->run(point, additions); });
    note_peak(step_);
    if (point != session_->point()) ++fault_counts_.late_changes;
    end_after(step_.duration);
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

  void end_step() override {
    if (setup_.watcher != nullptr) setup_.watcher->step_ends(step_.result, now());
    Observation reading = runner_->read(iteration_, now(), cards_);
    const Point ran = fetched_point();
    const Point before = session_->point();
    // The card that was fullest in the step, whatever the tuner looks at.
    const MemoryView& memory = reading.cards.empty() ? reading.memory : reading.cards[runner_->fullest()];
    IterationRecord record{.iteration = iteration_,
                           .start = began_,
                           .duration = now() - began_,
                           .memory = memory,
                           .step_peak_allocated = step_.peak_allocated,
                           .step_peak_reserved = step_.peak_reserved,
                           .result = step_.result,
                           .choice = nullptr};
    const StepDecision decision = session_->after_step(step_.result, deliver(std::move(reading)), ran,
                                                       step_.oom ? step_.oom->requested : 0);
    StepChoice choice{.point = ran, .reason = decision.reason};
    if (decision.moved) choice.delta = session_->point();
    for (std::size_t i = 0; i < choice.delta.size(); ++i) choice.delta[i] -= before[i];
    record.choice = choices_.share(std::move(choice));
    log(decision);
    const SimTime delay = obey(decision, *runner_);
    run_.ended_early = failures_.note(record.result, decision.moved, ran, setup_.bounds);
    run_.iterations.push_back(std::move(record));
    if (decision.end_run && run_.ended_early.empty()) run_.ended_early = end_reason(decision.reason);
    repeats_ = decision.retry && step_.result == StepResult::oom;
    if (run_.ended_early.empty() && !repeats_ && iteration_ == faults_.restart.checkpoint()) save_session();
    if (!run_.ended_early.empty()) return stop();
    fetch();
    const SimTime phases = run_phases();
    begin_after(delay + phases + restart());
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

  SimTime run_phases() {
    if (repeats_) return SimTime{0};
    return run_due_phases(iteration_, setup_.phases, [&](const Phase& phase) { return run_phase(phase); });
  }

  // The tuner is told before and after; the time of an emptied cache counts as the phase's.
  StepOutcome run_phase(const Phase& phase) {
    if (!run_.ended_early.empty()) return {};
    Moved* moved = find_moved(phase);
    PhaseReport report{.name = phase.name,
                       .ran = moved != nullptr ? moved->session->point()
                                               : phase.beside(session_->point(), setup_.model->parameters()),
                       .follow = phase.follow,
                       .begins = true};
    SimTime emptying = tell(report);
    StepOutcome outcome;
    if (run_.ended_early.empty()) {
      std::uint64_t retries = 0;
      if (moved != nullptr) {
        emptying += runner_->empty_cache();
        retries = runner_->read(iteration_, now(), cards_).memory.alloc_retries;
      }
      outcome = runner_->run(report.ran);
      note_peak(outcome);
      const bool gave_way =
          moved != nullptr && ask_about(*moved, phase, outcome, retries) && outcome.result == StepResult::oom;
      if (moved != nullptr) {  // what it leaves is not training's either
        emptying += runner_->empty_cache();
        runner_->reset_peak();
      }
      report.begins = false;
      report.result = gave_way ? StepResult::error : outcome.result;  // training need not make room
      report.peak_allocated = outcome.peak_allocated;
      if (outcome.oom) report.asked = outcome.oom->requested;
      emptying += tell(report);
    }
    outcome.duration += emptying;
    return outcome;
  }

  /// A phase that is moved, in the process that runs now.
  struct Moved {
    std::optional<TunerSession> session;
    std::int64_t runs = 0;
    std::uint64_t retries = 0;  // within them
  };

  [[nodiscard]] Moved* find_moved(const Phase& phase) {
    for (std::size_t i = 0; i < moved_.size(); ++i) {
      if (&setup_.phases[setup_.moved_phases[i].phase] == &phase) return &moved_[i];
    }
    return nullptr;
  }

  // What the phase's own tuner sees is the phase alone. Returns whether it moved the phase.
  bool ask_about(Moved& moved, const Phase& phase, const StepOutcome& outcome, std::uint64_t retries_before) {
    if (moved.session->ended()) return false;
    Observation reading = runner_->read(++moved.runs, now(), cards_);
    moved.retries += reading.memory.alloc_retries - retries_before;
    reading.cards.clear();
    reading.reading = moved.runs;
    reading.new_process = moved.runs == 1;
    reading.memory.alloc_retries = moved.retries;
    reading.memory.peak_allocated = outcome.peak_allocated;
    reading.memory.peak_reserved = outcome.peak_reserved;
    const StepDecision decision =
        moved.session->after_step(outcome.result, reading, {}, outcome.oom ? outcome.oom->requested : 0);
    if (decision.moved) {
      auto& made = run_.phase_adjustments[static_cast<std::size_t>(&moved - moved_.data())];
      made.push_back(moved.session->adjustments().back());
      made.back().iteration = iteration_;
    }
    const std::string head = "iteration " + std::to_string(iteration_) + ": " + phase.name + ": ";
    if (decision.moved || decision.end_run) run_.log.push_back(head + decision.reason);
    for (const std::string& line : decision.log) run_.log.push_back(head + line);
    return decision.moved;
  }

  // A change that follows a phase stands with the step before it. Returns the time that an emptied cache
  // took.
  SimTime tell(const PhaseReport& report) {
    const Point before = session_->point();
    const StepDecision decision = session_->on_phase(report, runner_->read(iteration_, now(), cards_));
    IterationRecord& record = run_.iterations.back();
    StepChoice choice = *record.choice;
    if (!decision.reason.empty()) choice.reason += (choice.reason.empty() ? "" : "; ") + decision.reason;
    if (decision.moved) {
      choice.delta.resize(before.size());
      for (std::size_t i = 0; i < before.size(); ++i) choice.delta[i] += session_->point()[i] - before[i];
    }
    record.choice = choices_.share(std::move(choice));
    log(decision);
    const SimTime delay = obey(decision, *runner_);
    if (decision.end_run) run_.ended_early = end_reason(decision.reason);
    return delay;
  }

  void log(const StepDecision& decision) {
    for (const std::string& line : decision.log) {
      run_.log.push_back("iteration " + std::to_string(iteration_) + ": " + line);
    }
  }

  void note_peak(const StepOutcome& outcome) {
    const Bytes total = totals_[runner_->fullest()];
    run_.peak_allocated.note(outcome.peak_allocated, total);
    run_.peak_reserved.note(outcome.peak_reserved, total);
  }

  const TrainingSetup& setup_;
  const Faults& faults_;
  const TunerMaker& make_tuner_;
  CardsRule cards_;
  std::vector<Moved> moved_;          // by place in the setup
  std::optional<CardRunner> runner_;  // of the processes that run now, one a card
  std::vector<Bytes> totals_;         // by card
  std::optional<TunerSession> session_;
  TrainingRun run_;
  RecentChoices choices_;
  std::int64_t iteration_ = 0;
  StepOutcome step_;  // that runs now or was the last
  SimTime began_{0};  // when it began
  FailuresInARow failures_;
  bool repeats_ = false;       // the step to begin is the failed one again
  std::deque<Point> waiting_;  // what fetched batches run at, the next one first; empty without delay
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

}  // namespace vramlab
