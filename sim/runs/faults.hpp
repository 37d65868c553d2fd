// What goes wrong in a training run, or is special about it, as a scenario declares it.
#pragma once

#include <cstdint>
#include <limits>

#include "core/observation.hpp"
#include "core/units.hpp"

namespace vramlab {

/// Memory that the program never gives back.
struct Leak {
  Bytes per_step = 0;
  std::int64_t from = 1;                                       ///< first iteration that leaks
  std::int64_t to = std::numeric_limits<std::int64_t>::max();  ///< last one

  friend bool operator==(const Leak&, const Leak&) = default;
};

/// The process ends once and goes on from its last checkpoint, in a new process.
struct Restart {
  std::int64_t after = 0;             ///< the iteration it dies after, once done; 0 = it does not
  std::int64_t checkpoint_every = 1;  ///< work since the last multiple of it is lost
  SimTime takes{0};                   ///< until the next step begins

  /// The iteration it goes on after; 0 = there was no checkpoint yet, and it begins anew.
  [[nodiscard]] std::int64_t checkpoint() const { return after / checkpoint_every * checkpoint_every; }

  friend bool operator==(const Restart&, const Restart&) = default;
};

/// Everything of that kind. The default is a run without faults. Chances are per iteration, from 0 to 1, and
/// drawn from `seed` and the number of the iteration alone: every policy meets the same faults, and meets
/// them again where it repeats an iteration after an OOM or a restart.
struct Faults {
  std::uint64_t seed = 1;
  Leak leak;
  Bytes search = 0;           ///< needed besides in the first step at parameters new to the process
  Bytes optimizer_state = 0;  ///< made by the first step of a process, and kept
  Bytes outlier = 0;          ///< needed besides in a step with an outlier sample
  double outlier_chance = 0;
  double error_chance = 0;         ///< of a CUDA error that is not OOM: the step's work is lost
  std::int64_t apply_delay = 0;    ///< steps that still run at the old parameters after a change
  std::int64_t reading_delay = 0;  ///< steps by which every reading of memory is late
  double missing_readings = 0;     ///< chance that a reading is missing; then the last one stays
  Restart restart;

  /// Memory that iteration `iteration` needs besides its own, from its begin to its end.
  [[nodiscard]] Bytes needed_besides(std::int64_t iteration, bool new_parameters) const;

  /// Memory that it leaves behind for good.
  [[nodiscard]] Bytes left_behind(std::int64_t iteration, bool new_process) const;

  /// What the leak takes in iterations `first` to `last`.
  [[nodiscard]] Bytes leaked(std::int64_t first, std::int64_t last) const;

  [[nodiscard]] bool has_outlier(std::int64_t iteration) const;
  [[nodiscard]] bool has_error(std::int64_t iteration) const;
  [[nodiscard]] bool reading_is_missing(std::int64_t iteration) const;

  friend bool operator==(const Faults&, const Faults&) = default;
};

}  // namespace vramlab
