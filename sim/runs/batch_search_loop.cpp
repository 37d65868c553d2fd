#include "sim/runs/batch_search_loop.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {
namespace {

// What a step fails with where an error is declared that is not for lack of memory.
constexpr const char* kDeclaredError = "CUDA error: unspecified launch failure";

void draw(const std::vector<StepDraw>& draws, Random& random, Point& point) {
  for (const StepDraw& drawn : draws) point[drawn.parameter] = random.between(drawn.low, drawn.high);
}

/// The processes of a search, and how a batch is probed in them.
class Prober final : private SteppedRun {
 public:
  explicit Prober(const BatchSearchSetup& setup)
      : SteppedRun(setup.faults, setup.others, setup.start), setup_(setup), random_(~setup.seed) {
    std::vector<ProcessSetup> cards = setup.cards;
    for (ProcessSetup& card : cards) {
      card.use_step_cache = false;
      card.keep_failed = setup.failed_tensors != FailedTensors::freed;
    }
    for (const SearchPhase& phase : setup.phases) {
      const WorkloadModel* model = phase.model != nullptr ? phase.model : setup.model;
      const auto known = std::find_if(processes_.begin(), processes_.end(),
                                      [&](const Process& process) { return process.model == model; });
      process_of_.push_back(static_cast<std::size_t>(known - processes_.begin()));
      if (known == processes_.end()) processes_.emplace_back(*model, cards, setup.make_performer);
    }
    start_processes(processes_.front().cards.processes());
    for (std::size_t i = 1; i < processes_.size(); ++i) add_processes(processes_[i].cards.processes());
  }

  SearchTrial probe(std::int64_t batch, const ProbeDepth& depth) {
    trial_ = {};
    trial_.probe.batch = batch;
    depth_ = depth;
    state_ = State::begins;
    run_events();
    return std::move(trial_);
  }

  /// Steps done so far, in all probes.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

  [[nodiscard]] MemoryView view() const {
    return view_of_cards(processes_.front().cards.views(), CardsRule::fullest);
  }

 private:
  struct Process {
    Process(const WorkloadModel& of, const std::vector<ProcessSetup>& setups, const MakePerformer& make)
        : model(&of), cards(of, setups, make) {
      for (const MemoryView& view : cards.views()) built.push_back(view.allocated);
    }
    const WorkloadModel* model;
    CardRunner cards;
    std::vector<Bytes> built;  ///< allocated on each card before any step
  };

  enum class State : std::uint8_t { begins, runs, ends };

  void begin_step() override {
    if (state_ == State::ends) return stop();
    if (state_ == State::begins) begin();
    while (left_ == 0) {
      if (++phase_ == setup_.phases.size()) {
        state_ = State::ends;
        return begin_after(clean_up());
      }
      begin_phase();
    }
    Process& process = processes_[process_of_[phase_]];
    const Point point = next_point();
    step_ = perform_step(++steps_, !process.cards.knows(point),
                         [&](const StepAdditions& additions) { return process.cards.run(point, additions); });
    end_after(step_.duration);
  }

  void end_step() override {
    ++trial_.steps.back();
    trial_.duration += step_.duration;
    --left_;
    if (step_.result != StepResult::ok) {
      fail(step_.result == StepResult::oom ? ProbeOutcome::oom : ProbeOutcome::failed);
      if (step_.result == StepResult::error) trial_.probe.error = kDeclaredError;
    }
    if (left_ == 0) note_peaks(processes_[process_of_[phase_]]);
    begin_after(SimTime{0});
  }

  void begin() {
    CardRunner& cards = processes_.front().cards;
    for (Process& process : processes_) {
      if (steps_ == 0) process.cards.empty_cache();  // of what building left
      process.cards.reset_peak();
      for (std::size_t i = 0; i < process.cards.size(); ++i) process.cards.card(i).use_share(depth_.share);
    }
    for (std::size_t i = 0; i < cards.size(); ++i) {
      const MemoryView view = cards.card(i).view();
      trial_.probe.cards.push_back(
          {.start = view.allocated, .free = cards.card(i).available(), .total = view.total});
    }
    state_ = State::runs;
    phase_ = 0;
    begin_phase();
  }

  // Leaves no step to do where the phase is not probed.
  void begin_phase() {
    trial_.steps.push_back(0);
    left_ = 0;
    if (trial_.probe.outcome != ProbeOutcome::ok || (phase_ > 0 && !depth_.all_phases)) return;
    if (const auto& failure = setup_.failure;
        failure && trial_.probe.batch >= failure->from && trial_.probe.batch <= failure->to) {
      fail(is_out_of_memory(failure->message) ? ProbeOutcome::oom : ProbeOutcome::failed);
      trial_.probe.error = failure->message;
      return;
    }
    // What a new shape does first must be over, too.
    const auto first_steps = static_cast<std::int64_t>(processes_[process_of_[phase_]].model->first_steps());
    left_ = depth_.steps + (depth_.steps > 1 ? first_steps : 0);
    varied_left_ = phase_ == 0 && !setup_.draws.empty() ? depth_.varied_steps * depth_.varied_starts : 0;
    left_ += varied_left_;
  }

  // First the steps whose shapes vary, in as many fresh starts as are wanted: where the first steps put what
  // stays for good decides how much fragments take later. Then those at the phase's own shape.
  Point next_point() {
    Point point = setup_.phases[phase_].point;
    if (varied_left_ > 0) {
      if (varied_left_ % depth_.varied_steps == 0 && trial_.steps.back() > 0) forget_steps();
      --varied_left_;
      draw(setup_.draws, random_, point);
    }
    point[setup_.parameter] = trial_.probe.batch;
    return point;
  }

  void fail(ProbeOutcome outcome) {
    trial_.probe.outcome = outcome;
    trial_.probe.phase = setup_.phases[phase_].name;
    left_ = 0;
  }

  void note_peaks(const Process& process) {
    Probe& probe = trial_.probe;
    double fullest = 0;
    for (const ProbedCard& card : probe.cards) fullest = std::max(fullest, share(card.peak, card.total));
    for (std::size_t i = 0; i < probe.cards.size(); ++i) {
      const MemoryView view = process.cards.card(i).view();
      ProbedCard& card = probe.cards[i];
      if (probe.outcome == ProbeOutcome::ok && share(view.peak_allocated, view.total) > fullest) {
        fullest = share(view.peak_allocated, view.total);
        probe.phase = setup_.phases[phase_].name;
      }
      card.peak = std::max(card.peak, view.peak_allocated);
      card.peak_reserved = std::max(card.peak_reserved, view.peak_reserved);
      card.current = view.allocated;
    }
  }

  static double share(Bytes part, Bytes total) {
    return static_cast<double>(part) / static_cast<double>(total);
  }

  SimTime forget_steps() {
    SimTime taken{0};
    for (Process& process : processes_) {
      taken += process.cards.forget_steps(setup_.failed_tensors == FailedTensors::never);
    }
    trial_.duration += taken;
    return taken;
  }

  // Returns the time it took.
  SimTime clean_up() {
    const SimTime taken = forget_steps();
    for (Process& process : processes_) {
      for (std::size_t i = 0; i < process.built.size(); ++i) {
        const Bytes left = process.cards.card(i).view().allocated;
        if (left <= process.built[i]) continue;
        trial_.probe.outcome = ProbeOutcome::held;
        trial_.probe.cards[i].current = left;
        trial_.probe.cards[i].start = process.built[i];
      }
    }
    return taken;
  }

  const BatchSearchSetup& setup_;
  std::deque<Process> processes_;        // they cannot move
  std::vector<std::size_t> process_of_;  // by phase
  std::int64_t steps_ = 0;
  Random random_;  // not that of the epoch: a probe sees steps like those to come, never the same ones

  // The probe at work.
  State state_ = State::begins;
  SearchTrial trial_;
  ProbeDepth depth_;
  std::size_t phase_ = 0;
  std::int64_t left_ = 0;         // steps of the phase
  std::int64_t varied_left_ = 0;  // of these, with shapes that vary
  StepOutcome step_;              // that runs now or was the last
};

void give_up(BatchSearchRun& run, std::string reason) {
  run.answer.action = SearcherAnswer::Action::give_up;
  run.answer.reason = std::move(reason);
}

void search(const BatchSearchSetup& setup, Searcher& policy, BatchSearchRun& run) {
  Prober prober{setup};
  SearchSession session{policy, setup.low, setup.high};
  while (true) {
    const std::int64_t trials = session.probes();
    run.answer = session.next({trials, run.duration, prober.view(), trials});
    if (run.answer.action != SearcherAnswer::Action::probe) return;
    if (setup.max_steps > 0 && prober.steps() >= setup.max_steps) {
      return give_up(run, "max_steps: no end after " + std::to_string(prober.steps()) + " steps");
    }
    run.trials.push_back(prober.probe(run.answer.batch, policy.depth()));
    const SearchTrial& trial = run.trials.back();
    run.duration += trial.duration;
    if (trial.probe.outcome == ProbeOutcome::oom || trial.probe.outcome == ProbeOutcome::held) ++run.ooms;
    session.told(trial.probe);
  }
}

class SearchEpoch final : private SteppedRun {
 public:
  SearchEpoch(const BatchSearchSetup& search, const SearchEpochSetup& setup)
      : SteppedRun(search.faults, search.others, setup.start),
        search_(search),
        setup_(setup),
        random_(setup.seed),
        cards_(*search.model, search.cards, search.make_performer) {
    start_processes(cards_.processes());
    for (std::size_t i = 1; i < search.phases.size() && setup.phases_every > 0; ++i) {
      const SearchPhase& phase = search.phases[i];
      phases_.push_back({setup.phases_every, phase.point, &cards_of(phase)});
    }
  }

  SearchEpochRun run() {
    run_events();
    run_.duration = now() - setup_.start;
    run_.phase_ooms = phase_counts_.ooms;
    count_retries(cards_);
    for (const Own& own : own_) count_retries(own.cards);
    return run_;
  }

 private:
  void begin_step() override {
    if (run_.iterations == setup_.iterations || failures_in_a_row_ == kMostFailuresInARow) return stop();
    ++run_.iterations;
    const auto last = static_cast<std::int64_t>(setup_.buckets.size()) - 1;
    const EpochBucket& bucket = setup_.buckets[static_cast<std::size_t>(random_.between(0, last))];
    batch_ = bucket.point[search_.parameter];
    point_ = bucket.point;
    draw(bucket.draws, random_, point_);
    step_ = perform_step(run_.iterations, !cards_.knows(point_),
                         [&](const StepAdditions& additions) { return cards_.run(point_, additions); });
    note(step_, cards_);
    end_after(step_.duration);
  }

  void end_step() override {
    failures_in_a_row_ = step_.result == StepResult::oom ? failures_in_a_row_ + 1 : 0;
    if (step_.result == StepResult::ok) run_.samples += search_.model->samples(point_);
    begin_after(run_due_phases(run_.iterations, phases_, [&](const DuePhase& phase) {
      Point point = phase.point;
      point[search_.parameter] = batch_;
      const StepOutcome outcome = phase.cards->run(point);
      note(outcome, *phase.cards);
      return outcome;
    }));
  }

  void note(const StepOutcome& step, const CardRunner& cards) {
    if (step.result == StepResult::oom) ++run_.ooms;
    const auto total = static_cast<double>(cards.card(cards.fullest()).view().total);
    run_.peak_share = std::max(run_.peak_share, static_cast<double>(step.peak_allocated) / total);
    run_.reserved_share = std::max(run_.reserved_share, static_cast<double>(step.peak_reserved) / total);
  }

  // A phase with a model of its own has a process of its own, as where it was probed.
  CardRunner& cards_of(const SearchPhase& phase) {
    if (phase.model == nullptr || phase.model == search_.model) return cards_;
    const auto known = std::ranges::find(own_, phase.model, &Own::model);
    if (known != own_.end()) return known->cards;
    own_.emplace_back(phase.model, search_);
    add_processes(own_.back().cards.processes());
    return own_.back().cards;
  }

  void count_retries(const CardRunner& cards) {
    for (std::size_t i = 0; i < cards.size(); ++i) run_.retries += cards.card(i).stats().num_alloc_retries;
  }

  struct DuePhase {
    std::int64_t every = 1;
    Point point;
    CardRunner* cards;
  };
  struct Own {
    Own(const WorkloadModel* of, const BatchSearchSetup& search)
        : model(of), cards(*of, search.cards, search.make_performer) {}
    const WorkloadModel* model;
    CardRunner cards;
  };

  const BatchSearchSetup& search_;
  const SearchEpochSetup& setup_;
  Random random_;
  CardRunner cards_;
  std::deque<Own> own_;  // of phases with a model of their own; they cannot move
  std::vector<DuePhase> phases_;
  Point point_;  // of the step that runs now or was the last
  StepOutcome step_;
  std::int64_t batch_ = 1;  // of its bucket
  std::int64_t failures_in_a_row_ = 0;
  SearchEpochRun run_;
};

}  // namespace

bool is_out_of_memory(std::string_view message) {
  return message.find("out of memory") != std::string_view::npos;
}

BatchSearchRun run_batch_search(const BatchSearchSetup& setup, Searcher& policy) {
  BatchSearchRun run;
  try {
    search(setup, policy, run);
  } catch (const PolicyFault& fault) {
    run.answer = {.action = SearcherAnswer::Action::give_up, .reason = fault.what()};
  }
  return run;
}

SearchTrial probe_batch(const BatchSearchSetup& setup, std::int64_t batch, const ProbeDepth& depth) {
  return Prober{setup}.probe(batch, depth);
}

std::int64_t largest_batch(const BatchSearchSetup& setup, std::int64_t steps) {
  BatchSearchSetup clean = setup;
  clean.failed_tensors = FailedTensors::freed;
  clean.faults = {};
  clean.make_performer = nullptr;
  std::erase_if(clean.others, [&](const OtherProcess& other) {
    return other.from > setup.start || other.to <= setup.start;
  });
  for (OtherProcess& other : clean.others) other.to = SimTime::max();
  Prober prober{clean};
  const auto fits = [&](std::int64_t batch) {
    return prober.probe(batch, {steps, true}).probe.outcome == ProbeOutcome::ok;
  };
  std::int64_t good = 0;
  std::int64_t bad = clean.low;
  while (fits(bad)) {
    good = bad;
    if (bad == clean.high) return good;
    bad = std::min(2 * bad, clean.high);
  }
  if (good == 0) return 0;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

SearchEpochRun run_search_epoch(const BatchSearchSetup& search, const SearchEpochSetup& setup) {
  return SearchEpoch{search, setup}.run();
}

}  // namespace vramlab
