// A run of steps on the event engine: its clock, the processes outside it that come and go, its faults and
// phases. Training, epochs and searches are such runs.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/observation.hpp"
#include "policies/contract/session.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/runs/faults.hpp"
#include "sim/runs/step_performer.hpp"

namespace vramlab {

/// Memory that a process outside the run holds for some time. What arrives within a step counts from the
/// next step on.
struct OtherProcess {
  SimTime from{0};
  SimTime to{SimTime::max()};  ///< max = until the end
  Bytes bytes = 0;
  std::size_t card = 0;  ///< on which card
};

/// A step at its own parameters that is run at intervals (validation, for one).
struct Phase {
  std::string name;
  std::int64_t every = 1;  ///< after each iteration whose number is a multiple of it
  Point point;             ///< what it runs at
  Point follow;  ///< by parameter: that many times what training runs at, in place of `point`; 0 = does not
                 ///< follow. Empty = nothing does

  /// What it runs at while training runs at `training`, within the model's `range`.
  [[nodiscard]] Point beside(const Point& training, const ParameterSpace& range) const {
    if (follow.empty()) return point;
    Point ran = point;
    for (std::size_t i = 0; i < ran.size(); ++i) {
      if (follow[i] > 0) ran[i] = follow[i] * training[i];
    }
    return range.clamp(std::move(ran));
  }
};

/// What the phases of a run came to.
struct PhaseCounts {
  std::int64_t ooms = 0;  ///< that failed for lack of memory
  SimTime time{0};        ///< spent in them

  /// Counts those of a later process of the same run.
  void add(const PhaseCounts& later) {
    ooms += later.ooms;
    time += later.time;
  }
};

/// Why a policy ended its run: in its own words, or that it has none. Never empty.
inline std::string end_reason(const std::string& reason) {
  return reason.empty() ? "the policy ended it and gave no reason" : reason;
}

/// What the faults of a run came to.
struct FaultCounts {
  std::int64_t heavy_steps = 0;  ///< steps that needed more once: outlier samples, searches at new parameters
  std::int64_t heavy_ooms = 0;   ///< of these, steps that ran out of memory
  std::int64_t late_changes = 0;      ///< steps that ran at parameters no longer wanted
  std::int64_t missing_readings = 0;  ///< steps after which the policy saw an older reading
  Bytes leaked = 0;                   ///< bytes lost to the leak, on each card, in the process that ran last

  /// Counts those of a later process of the same run.
  void add(const FaultCounts& later) {
    heavy_steps += later.heavy_steps;
    heavy_ooms += later.heavy_ooms;
    late_changes += later.late_changes;
    missing_readings += later.missing_readings;
    leaked = later.leaked;
  }
};

/// The readings of a run on their way to one policy, as late and as incomplete as its faults make them.
class PolicyReadings {
 public:
  /// `faults` must outlive it.
  explicit PolicyReadings(const Faults& faults) : faults_(faults) {}

  /// What the policy sees of `now`, a reading after step `now.iteration`: that of some steps before, or the
  /// last one again where one is missing. Lasts until the next call.
  const Observation& deliver(Observation now);
  /// Forgets those on their way; `first` is seen until one arrives.
  void restart(Observation first);
  /// A phase has run since the last reading.
  void note_phase() { after_phase_ = true; }

 private:
  const Faults& faults_;
  std::deque<Observation> readings_;  // on their way
  Observation reading_;               // the last one that arrived
  bool after_phase_ = false;          // since the last reading
  bool new_process_ = true;           // until its first reading
};

/// Steps that may fail in a row at unchanged parameters before a run is given up.
inline constexpr std::int64_t kMostFailuresInARow = 10;

// What every host of a tuner does after a step, a training run or a job of a queue.

/// Counts the steps that failed one after the other at unchanged parameters: no progress must not look like
/// training.
class FailuresInARow {
 public:
  /// A step at `ran`, in `space`, ended so; `moved`: the parameters change after it. Returns why the run is
  /// given up, empty if it goes on.
  std::string note(StepResult result, bool moved, const Point& ran, const ParameterSpace& space);

 private:
  std::int64_t count_ = 0;
};

/// Does what `decision` wants of the device: empties the cache, resets the peak counter of `cards`. Returns
/// the time it took.
template <class Cards>
SimTime obey(const StepDecision& decision, Cards& cards) {
  const SimTime delay = decision.empty_cache ? cards.empty_cache() : SimTime{0};
  if (decision.reset_peak) cards.reset_peak();
  return delay;
}

/// Base of the runs. A step is performed when it begins and is looked at when it ends; what a run does at
/// these two events is its own.
class SteppedRun {
 public:
  SteppedRun(const SteppedRun&) = delete;
  SteppedRun& operator=(const SteppedRun&) = delete;

 protected:
  /// The run begins at `start` of the simulated time. `faults` must outlive it.
  SteppedRun(const Faults& faults, const std::vector<OtherProcess>& others, SimTime start = SimTime{0});
  ~SteppedRun() = default;

  /// Performs the next step and calls `end_after`; or waits with `begin_after`; or calls `stop`.
  virtual void begin_step() = 0;
  /// Looks at the step that is over, and calls `begin_after` or `stop`.
  virtual void end_step() = 0;

  /// Begins a step at once, and hands on the events until `stop`; may be called again then, to go on.
  void run_events();
  void begin_after(SimTime delay) { simulation_.schedule(delay, StepBegin{}); }
  void end_after(SimTime duration) { simulation_.schedule(duration, StepEnd{}); }
  void stop() { simulation_.stop(); }
  [[nodiscard]] SimTime now() const { return simulation_.now(); }

  /// New processes, one a card, take the place of those before, which may be gone already. What others want
  /// of the cards now they get.
  void start_processes(const std::vector<StepPerformer*>& cards);
  /// Further processes beside them, one a card.
  void add_processes(const std::vector<StepPerformer*>& cards);

  /// Performs step `number` (from 1) with what its faults add: `perform(StepAdditions)` gives its outcome.
  template <class Perform>
  StepOutcome perform_step(std::int64_t number, bool new_parameters, const Perform& perform) {
    const StepAdditions additions{faults_.needed_besides(number, new_parameters),
                                  faults_.left_behind(number, process_is_new_)};
    return with_faults(number, additions, perform(additions));
  }

  /// Runs those of `phases` that are due after step `number`: `perform(phase)` gives the outcome of one.
  /// Returns the time they took.
  template <class Phases, class Perform>
  SimTime run_due_phases(std::int64_t number, const Phases& phases, const Perform& perform) {
    SimTime taken{0};
    for (const auto& phase : phases) {
      if (number % phase.every != 0) continue;
      const StepOutcome outcome = perform(phase);
      readings_.note_phase();
      phase_counts_.ooms += outcome.result == StepResult::oom ? 1 : 0;
      taken += outcome.duration;
    }
    phase_counts_.time += taken;
    return taken;
  }

  /// PolicyReadings::deliver and ::restart, for the policy that all runs have.
  const Observation& deliver(Observation now);
  void restart_readings(Observation first) { readings_.restart(std::move(first)); }

  FaultCounts fault_counts_;
  PhaseCounts phase_counts_;

 private:
  struct StepBegin {};
  struct StepEnd {};
  struct OthersChange {
    std::size_t card = 0;
    std::int64_t bytes = 0;
  };

  void handle(const StepBegin&) { begin_step(); }
  void handle(const StepEnd&) { end_step(); }
  void handle(const OthersChange& change);
  std::int64_t& wanted_of(std::size_t card);
  StepOutcome with_faults(std::int64_t number, const StepAdditions& additions, StepOutcome outcome);

  const Faults& faults_;
  Simulation<std::variant<StepBegin, StepEnd, OthersChange>> simulation_;
  std::vector<std::vector<StepPerformer*>> processes_;  // by card
  std::vector<std::int64_t> others_wanted_;             // bytes, by card
  bool process_is_new_ = true;                          // until a step of it has succeeded
  PolicyReadings readings_;
};

}  // namespace vramlab
