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

/// The processes of a search, and how a batch is probed in them.
class Prober {
 public:
  explicit Prober(const BatchSearchSetup& setup) : setup_(setup) {
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
      if (known == processes_.end()) processes_.emplace_back(*model, cards);
    }
  }

  SearchTrial probe(std::int64_t batch, const ProbeDepth& depth) {
    SearchTrial trial;
    trial.probe.batch = batch;
    begin(trial.probe);
    for (std::size_t phase = 0; phase < setup_.phases.size(); ++phase) {
      if (trial.probe.outcome == ProbeOutcome::ok && (phase == 0 || depth.all_phases)) {
        run_phase(phase, depth.steps, trial);
      } else {
        trial.steps.push_back(0);
      }
    }
    clean_up(trial);
    return trial;
  }

  [[nodiscard]] MemoryView view() const {
    return view_of_cards(processes_.front().cards.views(), CardsRule::fullest);
  }

 private:
  struct Process {
    Process(const WorkloadModel& of, const std::vector<ProcessSetup>& setups)
        : model(&of), cards(of, setups) {
      for (const MemoryView& view : cards.views()) built.push_back(view.allocated);
    }
    const WorkloadModel* model;
    CardRunner cards;
    std::vector<Bytes> built;  ///< allocated on each card before any step
  };

  void begin(Probe& probe) {
    CardRunner& cards = processes_.front().cards;
    for (Process& process : processes_) process.cards.reset_peak();
    for (std::size_t i = 0; i < cards.size(); ++i) {
      const MemoryView view = cards.card(i).view();
      probe.cards.push_back(
          {.start = view.allocated, .free = cards.card(i).available(), .total = view.total});
    }
  }

  void run_phase(std::size_t number, std::int64_t steps, SearchTrial& trial) {
    const SearchPhase& phase = setup_.phases[number];
    Probe& probe = trial.probe;
    Point point = phase.point;
    point[setup_.parameter] = probe.batch;
    trial.steps.push_back(0);
    if (setup_.fails_from && probe.batch >= *setup_.fails_from) {
      probe.outcome = is_out_of_memory(setup_.failure) ? ProbeOutcome::oom : ProbeOutcome::failed;
      probe.error = setup_.failure;
      probe.phase = phase.name;
      return;
    }
    Process& process = processes_[process_of_[number]];
    // What a new shape does first must be over, too.
    const auto first_steps = static_cast<std::int64_t>(process.model->first_steps());
    if (steps > 1) steps += first_steps;
    while (trial.steps.back() < steps && probe.outcome == ProbeOutcome::ok) {
      const StepOutcome step = process.cards.run(point);
      ++trial.steps.back();
      trial.duration += step.duration;
      if (step.result == StepResult::oom) {
        probe.outcome = ProbeOutcome::oom;
        probe.phase = phase.name;
      }
    }
    note_peaks(process, phase.name, probe);
  }

  void note_peaks(Process& process, const std::string& phase, Probe& probe) const {
    double fullest = 0;
    for (const ProbedCard& card : probe.cards) fullest = std::max(fullest, share(card.peak, card.total));
    for (std::size_t i = 0; i < probe.cards.size(); ++i) {
      const MemoryView view = process.cards.card(i).view();
      ProbedCard& card = probe.cards[i];
      if (probe.outcome == ProbeOutcome::ok && share(view.peak_allocated, view.total) > fullest) {
        fullest = share(view.peak_allocated, view.total);
        probe.phase = phase;
      }
      card.peak = std::max(card.peak, view.peak_allocated);
      card.peak_reserved = std::max(card.peak_reserved, view.peak_reserved);
      card.current = view.allocated;
    }
  }

  static double share(Bytes part, Bytes total) {
    return static_cast<double>(part) / static_cast<double>(total);
  }

  void clean_up(SearchTrial& trial) {
    for (Process& process : processes_) {
      trial.duration += process.cards.forget_steps(setup_.failed_tensors == FailedTensors::never);
      for (std::size_t i = 0; i < process.built.size(); ++i) {
        const Bytes left = process.cards.card(i).view().allocated;
        if (left <= process.built[i]) continue;
        trial.probe.outcome = ProbeOutcome::held;
        trial.probe.cards[i].current = left;
        trial.probe.cards[i].start = process.built[i];
      }
    }
  }

  const BatchSearchSetup& setup_;
  std::deque<Process> processes_;        // they cannot move
  std::vector<std::size_t> process_of_;  // by phase
};

void search(const BatchSearchSetup& setup, Searcher& policy, BatchSearchRun& run) {
  Prober prober{setup};
  SearcherQuestion question{setup.low, setup.high, nullptr};
  while (true) {
    const auto trials = static_cast<std::int64_t>(run.trials.size());
    const Observation now{trials, run.duration, prober.view(), trials};
    run.answer = policy.decide(question, now);
    run.answer.batch = std::min(run.answer.batch, setup.high);
    if (run.answer.action != SearcherAnswer::Action::probe) return;
    if (run.trials.size() == kMostProbes) break;
    run.trials.push_back(prober.probe(std::max(run.answer.batch, setup.low), policy.depth()));
    const SearchTrial& trial = run.trials.back();
    run.duration += trial.duration;
    if (trial.probe.outcome == ProbeOutcome::oom || trial.probe.outcome == ProbeOutcome::held) ++run.ooms;
    question.last = &run.trials.back().probe;
  }
  run.answer.action = SearcherAnswer::Action::give_up;
  run.answer.reason = "no end after " + std::to_string(kMostProbes) + " probes";
}

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

namespace {

class Epoch {
 public:
  Epoch(const BatchSearchSetup& search, const SearchEpochSetup& setup)
      : search_(search), setup_(setup), random_(setup.seed), runner_(*search.model, search.cards) {}

  SearchEpochRun run() {
    std::int64_t failures_in_a_row = 0;
    while (run_.iterations < setup_.iterations && failures_in_a_row < kMostFailuresInARow) {
      ++run_.iterations;
      const EpochBucket& bucket = any_bucket();
      const Point point = any_point(bucket);
      const StepOutcome step = perform(point);
      failures_in_a_row = step.result == StepResult::oom ? failures_in_a_row + 1 : 0;
      if (step.result == StepResult::ok) run_.samples += search_.model->samples(point);
      const bool phases = setup_.phases_every > 0 && run_.iterations % setup_.phases_every == 0;
      if (phases) run_phases(bucket.point[search_.parameter]);
    }
    for (std::size_t i = 0; i < runner_.size(); ++i) {
      run_.retries += runner_.card(i).stats().num_alloc_retries;
    }
    return run_;
  }

 private:
  const EpochBucket& any_bucket() {
    const auto last = static_cast<std::int64_t>(setup_.buckets.size()) - 1;
    return setup_.buckets[static_cast<std::size_t>(random_.between(0, last))];
  }

  Point any_point(const EpochBucket& bucket) {
    Point point = bucket.point;
    for (const EpochBucket::Draw& draw : bucket.draws) {
      point[draw.parameter] = random_.between(draw.low, draw.high);
    }
    return point;
  }

  StepOutcome perform(const Point& point) {
    const StepOutcome step = runner_.run(point);
    if (step.result == StepResult::oom) ++run_.ooms;
    run_.duration += step.duration;
    const auto total = static_cast<double>(runner_.card(runner_.fullest()).view().total);
    run_.peak_share = std::max(run_.peak_share, static_cast<double>(step.peak_allocated) / total);
    run_.reserved_share = std::max(run_.reserved_share, static_cast<double>(step.peak_reserved) / total);
    return step;
  }

  // A phase with a model of its own has a process of its own, where it was probed just so.
  void run_phases(std::int64_t batch) {
    for (std::size_t i = 1; i < search_.phases.size(); ++i) {
      const SearchPhase& phase = search_.phases[i];
      if (phase.model != nullptr && phase.model != search_.model) continue;
      Point point = phase.point;
      point[search_.parameter] = batch;
      perform(point);
    }
  }

  const BatchSearchSetup& search_;
  const SearchEpochSetup& setup_;
  Random random_;
  CardRunner runner_;
  SearchEpochRun run_;
};

}  // namespace

SearchEpochRun run_search_epoch(const BatchSearchSetup& search, const SearchEpochSetup& setup) {
  return Epoch{search, setup}.run();
}

}  // namespace vramlab
