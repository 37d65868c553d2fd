// Where a job stands while the queue runs.
#pragma once

#include <cstdint>

#include "policies/waiting_jobs.hpp"

namespace vramlab {

/// The loop's own notes on one job; what becomes of it is in its JobRecord.
struct JobStanding {
  GroupId group = 0;
  std::uint64_t ticket = 0;
  std::uint32_t epoch = 0;  ///< rises when it starts to wait, to run, or leaves
  std::size_t phase = 0;
  bool waits = false;
  bool runs = false;
  SimTime since{0};  ///< it waits or runs
  SimTime ran{0};    ///< in earlier stretches of this attempt (by phase)
  Bytes need = 0;    ///< promised on each card
};

}  // namespace vramlab
