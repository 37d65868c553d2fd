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
#include "sim/runs/faults.hpp"

namespace vramlab {

/// Memory that a process outside the run holds for some time. What arrives within a step counts from the
/// next step on.
struct OtherProcess {
  SimTime from{0};
  SimTime to{SimTime::max()};  ///< max = until the end
  Bytes bytes = 0;
  std::size_t card = 0;  ///< on which card
};

/// A step at its own parameters that is run every so many iterations (validation, for one).
struct Phase {
  std::string name;
  std::int64_t every = 1;  ///< after each iteration whose number is a multiple of it
  Point point;
};

/// Watches a run from inside: the history of its allocator, and where the steps begin and end in it. A run
/// that is watched takes no step from the cache.
class RunWatcher : public AllocatorListener {
 public:
  virtual void step_begins(std::int64_t iteration, const Point& point, SimTime now) = 0;
  virtual void step_ends(StepResult result, SimTime now) = 0;
  /// Called once, with the first card's allocator as the last step left it.
  virtual void run_ends(const CachingAllocator& allocator) = 0;
};

/// Everything a training run is made of but its policy.
struct TrainingSetup {
  const WorkloadModel* model = nullptr;
  ParameterSpace bounds;  ///< within the model's range; the host enforces them
  Point start;
  std::int64_t iterations = 0;
  ProcessSetup process;
  std::vector<ProcessSetup> more_cards;  ///< further cards of a workload on several
  std::vector<OtherProcess> others;
  std::vector<Phase> phases;
  Faults faults;
  RunWatcher* watcher = nullptr;  ///< must outlive the run
  MakePerformer make_performer;   ///< empty = a StepRunner, on a pretended card
};

/// The setups of all cards, the first one's in front.
std::vector<ProcessSetup> cards_of(const TrainingSetup& setup);

/// What the faults of a run came to.
struct FaultCounts {
  std::int64_t heavy_steps = 0;  ///< steps that needed more once: outlier samples, searches at new parameters
  std::int64_t heavy_ooms = 0;   ///< of these, steps that ran out of memory
  std::int64_t late_changes = 0;      ///< steps that ran at parameters no longer wanted
  std::int64_t missing_readings = 0;  ///< steps after which the policy saw an older reading
  Bytes leaked = 0;                   ///< bytes lost to the leak, on each card, in the process that ran last
};

/// The highest share of a card that any step took. Cards may differ in size.
struct CardPeak {
  Bytes bytes = 0;
  Bytes total = 0;  ///< of that card

  void note(Bytes peak, Bytes of) {
    const bool higher = static_cast<double>(peak) * static_cast<double>(total) >
                        static_cast<double>(bytes) * static_cast<double>(of);
    if (total == 0 || higher) *this = {peak, of};
  }
};

/// What came out of a run.
struct TrainingRun {
  std::vector<IterationRecord> iterations;
  std::vector<Adjustment> adjustments;
  std::vector<std::string> log;       ///< lines the policy wrote, each with its iteration
  std::vector<Statistic> statistics;  ///< what the policy knew about itself at the end
  MemoryStats memory;                 ///< all counters at the end
  CardPeak peak_allocated;            ///< of the whole run, phases among it
  CardPeak peak_reserved;
  std::int64_t phase_ooms = 0;  ///< phases that failed for lack of memory
  SimTime phase_time{0};        ///< spent in phases
  FaultCounts faults;
  SimTime duration{0};
  Point final_point;
  std::string ended_early;  ///< why the run stopped before its last iteration; empty if it did not
};

/// Steps that may fail in a row at unchanged parameters before a run is given up.
inline constexpr std::int64_t kMostFailuresInARow = 10;

/// Makes a tuner as it is at the start of a run.
using TunerMaker = std::function<std::unique_ptr<Tuner>()>;

/// Runs `setup` with a tuner of `make_tuner`, which on several cards sees the one that `cards` says. After a
/// restart it is asked for another one; that one loads what the first had saved with the checkpoint, or
/// begins anew at `setup.start` if there was none or it saves nothing. One that fails then, or refuses what
/// was saved, ends the run early. Deterministic on a pretended card: equal input gives an equal run. Throws
/// InputError if the workload's weights alone do not fit, if a run that restarts is watched (a history is
/// that of one process), or if faults add memory to the steps of a real card.
TrainingRun run_training(const TrainingSetup& setup, const TunerMaker& make_tuner,
                         CardsRule cards = CardsRule::fullest);

/// The same for a run that does not restart; InternalError if it does.
TrainingRun run_training(const TrainingSetup& setup, std::unique_ptr<Tuner> tuner,
                         CardsRule cards = CardsRule::fullest);

}  // namespace vramlab
