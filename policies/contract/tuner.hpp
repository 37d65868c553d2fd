// The tuner family: after each step, by how much to move the workload's parameters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/parameter_space.hpp"
#include "policies/contract/policy.hpp"

namespace vramlab {

/// Asked after every step, failed ones included.
struct TunerQuestion {
  Point point;                         ///< the parameters in force, which an answer's `delta` changes
  StepResult result = StepResult::ok;  ///< oom: the step failed for lack of memory
  Point ran{};      ///< what the step ran at, where that differs: batches fetched before a change; else empty
  Bytes asked = 0;  ///< of a failed step: the bytes of the request that found no room; 0 = not known

  /// The parameters the step ran at.
  [[nodiscard]] const Point& ran_at() const { return ran.empty() ? point : ran; }
};

/// A phase of its own between two steps (validation, for one): it is about to run, or it has ended.
struct PhaseReport {
  std::string name;
  Point point;   ///< the parameters of training that are in force
  Point ran;     ///< what the phase runs at
  Point follow;  ///< by parameter: `ran` is this times `point`, within the workload's range; 0 or empty = a
                 ///< value of the phase's own
  bool begins = false;                 ///< about to run: what follows is not known yet
  StepResult result = StepResult::ok;  ///< oom: it failed for lack of memory
  Bytes peak_allocated = 0;            ///< highest allocated within it
  Bytes asked = 0;                     ///< of a failed one: the bytes of the request that found no room
};

/// What to change from the next step on. An empty answer changes nothing and says nothing.
struct TunerAnswer {
  Point delta;               ///< change of each parameter, in the space's order; empty = no change
  bool reset_peak = false;   ///< reset the device's peak counter after this step
  bool empty_cache = false;  ///< give cached memory back to the device first
  bool retry = false;        ///< run the failed step again at once, at the new parameters (after an OOM)
  bool end_run = false;      ///< the run cannot go on
  std::string reason;        ///< one sentence with the figures it rests on; empty if nothing was evaluated
  std::vector<std::string> log;  ///< lines for the run's log

  /// True if some parameter is asked to move.
  [[nodiscard]] bool moves() const {
    return std::any_of(delta.begin(), delta.end(), [](std::int64_t change) { return change != 0; });
  }
};

/// A policy that moves parameters between steps.
class Tuner : public Decider<TunerQuestion, TunerAnswer> {
 public:
  static constexpr const char* kFamily = "policy";  ///< as users are told of it

  /// Told of every phase before it runs and after it, between two calls of `decide`; `observation` is read at
  /// that moment. The answer may empty the cache, reset the peak counter, end the run and, once the phase has
  /// ended, move parameters; `retry` means nothing here. By default phases are none of its business.
  virtual TunerAnswer note_phase(const PhaseReport& /*phase*/, const Observation& /*observation*/) {
    return {};
  }

  /// What it knows, as text, for an equal policy to go on from after a restart; empty = it saves nothing.
  [[nodiscard]] virtual std::string save() const { return {}; }

  /// Goes on from what `save` of an equal policy gave: all later answers are as that one's would have been.
  /// Throws InputError for any other text.
  virtual void load(const std::string& /*text*/) {
    throw InputError("", "this policy saves nothing, so there is nothing it could load.");
  }
};

}  // namespace vramlab
