// The host's side of a tuner: asks it after every step, keeps its answers within bounds, and keeps the books.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/observation.hpp"
#include "core/parameter_space.hpp"
#include "policies/contract/tuner.hpp"

namespace vramlab {

/// A change of parameters that was applied.
struct Adjustment {
  std::int64_t iteration = 0;  ///< the step after which it was made; it counts from the next one
  SimTime time{0};             ///< simulated time at the end of that step
  Point from;
  Point to;
  std::string reason;  ///< begins with "oom" if the step failed for lack of memory
  MemoryView memory;   ///< what the tuner saw
};

/// What the host must do after a step, in the order of the members.
struct StepDecision {
  bool empty_cache = false;  ///< give cached memory back to the device
  bool reset_peak = false;   ///< reset the device's peak counter
  bool retry = false;        ///< run the failed step again at once, at the new parameters
  bool end_run = false;      ///< this policy's run is over; `reason` says why
  bool moved = false;        ///< parameters changed: an Adjustment was recorded
  std::string reason;        ///< one sentence; empty if nothing was evaluated
  std::vector<std::string> log;
};

/// One tuner at work on one run. Bounds are kept here, not by the tuner: `point()` never leaves the space.
/// The same code runs above the simulator and above a real card; it touches no device itself.
class TunerSession {
 public:
  /// Throws InputError if `start` has the wrong number of values or lies outside `space`.
  TunerSession(std::unique_ptr<Tuner> tuner, ParameterSpace space, Point start);

  /// Asks the tuner about the step just run at `point()`, applies its answer and says what is left to do.
  /// An answer of the wrong size, or a PolicyFault, ends the run with a reason. Throws InternalError if the
  /// run is over already or if `observation.memory.total` is 0, because then no usage can be told.
  /// `ran` is what the step ran at, where that is not `point()`; else it is empty or equal. `asked` is the
  /// request that a failed step found no room for, where that is known.
  StepDecision after_step(StepResult result, const Observation& observation, const Point& ran = {},
                          Bytes asked = 0);

  /// Tells the tuner of a phase that is about to run or has ended, and applies its answer as `after_step`
  /// does; the reason of a change begins with the phase's name. `phase.point` is set here. Throws as
  /// `after_step`.
  StepDecision on_phase(PhaseReport phase, const Observation& observation);

  /// Parameters and the tuner's state as text, to be kept with a checkpoint; empty if the tuner saves
  /// nothing. Throws PolicyFault if the tuner fails.
  [[nodiscard]] std::string save() const;

  /// Goes on from what `save` of a session with an equal tuner gave; the books of changes begin anew. In a
  /// new process the next observation has `new_process`. Throws InputError for any other text, or for
  /// parameters outside the space, and PolicyFault if the tuner fails.
  void load(const std::string& text);

  /// The parameters for the next step.
  [[nodiscard]] const Point& point() const { return point_; }

  /// Tells the session that the host itself runs at other parameters now (a new phase, say); clamped, and
  /// no adjustment of the tuner. Throws InputError for a wrong number of values.
  void set_point(Point point);

  /// Whom to tell of every change after it was recorded, e.g. the data loader. Called by after_step.
  void on_adjustment(std::function<void(const Adjustment&)> listener) { listener_ = std::move(listener); }

  [[nodiscard]] const ParameterSpace& space() const { return space_; }
  [[nodiscard]] const std::vector<Adjustment>& adjustments() const { return adjustments_; }
  [[nodiscard]] const Tuner& tuner() const { return *tuner_; }

  /// True once a decision said `end_run`.
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  void require_running(const Observation& observation) const;
  StepDecision obey(TunerAnswer answer, StepResult result, const Observation& observation);
  void apply(const TunerAnswer& answer, StepResult result, const Observation& observation,
             StepDecision& decision);

  std::unique_ptr<Tuner> tuner_;
  ParameterSpace space_;
  Point point_;
  std::vector<Adjustment> adjustments_;
  std::function<void(const Adjustment&)> listener_;
  bool ended_ = false;
};

}  // namespace vramlab
