// What can happen in a run of the job queue, and the clock that says when.
#pragma once

#include <cstdint>

#include "sim/engine/simulation.hpp"

namespace vramlab {

struct JobEvent {
  enum class Kind : std::uint8_t {
    arrival,
    pump,      ///< look at the queue, after everything else of this moment
    poll,      ///< look at it because it is time to
    deadline,  ///< the job has waited as long as it may
    take,      ///< its start-up is over: it takes its memory
    work,      ///< what the job's execution waited for
    crash,
    limit,  ///< the job has taken as long as it may
    lease,
    stranger
  };
  Kind kind = Kind::pump;
  std::uint32_t job = 0;    ///< or stranger
  std::uint32_t epoch = 0;  ///< of the job, when the event was scheduled: a later one makes it void
};

using JobClock = Simulation<JobEvent>;

}  // namespace vramlab
