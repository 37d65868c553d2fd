// A training run: one step after another, with a tuner that may move the parameters between them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/run_record.hpp"
#include "policies/contract/session.hpp"
#include "sim/runs/card_runner.hpp"
#include "sim/runs/stepped_run.hpp"

namespace vramlab {

/// Watches a run from inside: the history of its allocator, and where the steps begin and end in it. A run
/// that is watched takes no step from the cache.
class RunWatcher : public AllocatorListener {
 public:
  virtual void step_begins(std::int64_t iteration, const Point& point, SimTime now) = 0;
  virtual void step_ends(StepResult result, SimTime now) = 0;
  /// Called once, with the first card's allocator as the last step left it.
  virtual void run_ends(const CachingAllocator& allocator) = 0;
};

/// Makes a tuner as it is at the start of a run.
using TunerMaker = std::function<std::unique_ptr<Tuner>()>;

/// A phase whose parameters a tuner of its own moves: it begins at the phase's `point`, is asked after each
/// run of the phase as if that was a step, and sees the phase's own peak. The cache is emptied around each
/// run, so that what it sees is not training's. In a new process it begins anew. Where it ends its run, the
/// phase goes on at its last values. A failure to which it gave way is told to training's tuner as `error`.
struct MovedPhase {
  std::size_t phase = 0;  ///< its place in TrainingSetup::phases
  ParameterSpace bounds;  ///< all parameters of the workload; those that stay have one value
  TunerMaker make_tuner;
};

/// Everything a training run is made of but its policy.
struct TrainingSetup {
  const WorkloadModel* model = nullptr;
  ParameterSpace bounds;  ///< within the model's range; the host enforces them
  Point start;
  std::int64_t iterations = 0;
  SimTime begins{0};  ///< by the clock of `others`; a run's duration counts from 0
  ProcessSetup process;
  std::vector<ProcessSetup> more_cards;  ///< further cards of a workload on several
  std::vector<OtherProcess> others;
  std::vector<Phase> phases;
  std::vector<MovedPhase> moved_phases;
  Faults faults;
  RunWatcher* watcher = nullptr;  ///< must outlive the run
  MakePerformer make_performer;   ///< empty = a StepRunner, on a pretended card
};

/// The setups of all cards, the first one's in front.
std::vector<ProcessSetup> cards_of(const TrainingSetup& setup);

/// What came out of a run.
struct TrainingRun {
  std::vector<IterationRecord> iterations;
  std::vector<Adjustment> adjustments;
  std::vector<std::string> log;       ///< lines the policy wrote, each with its iteration
  std::vector<Statistic> statistics;  ///< what the policy knew about itself at the end
  MemoryStats memory;                 ///< all counters at the end
  CardPeak peak_allocated;            ///< of the whole run, phases among it
  CardPeak peak_reserved;
  PhaseCounts phases;
  std::vector<Point> phase_points;  ///< of each moved phase, in the order of the setup: where it ended
  std::vector<std::vector<Adjustment>> phase_adjustments;  ///< and how it got there, by training's iterations
  FaultCounts faults;
  SimTime duration{0};
  Point final_point;
  std::string ended_early;  ///< why the run stopped before its last iteration; empty if it did not
};

/// Runs `setup` with a tuner of `make_tuner`, which on several cards sees the one that `cards` says. After a
/// restart it is asked for another one; that one loads what the first had saved with the checkpoint, or
/// begins anew at `setup.start` if there was none or it saves nothing. One that fails then, or refuses what
/// was saved, ends the run early. Deterministic on a pretended card: equal input gives an equal run. Throws
/// InputError if the workload's weights alone do not fit, or if a run that restarts is watched (a history is
/// that of one process).
TrainingRun run_training(const TrainingSetup& setup, const TunerMaker& make_tuner,
                         CardsRule cards = CardsRule::fullest);

}  // namespace vramlab
