// What a run leaves behind: one record an iteration.
#pragma once

#include <cstdint>
#include <string>

#include "core/observation.hpp"
#include "core/parameter_space.hpp"

namespace vramlab {

/// One iteration as it happened.
struct IterationRecord {
  std::int64_t iteration = 0;  ///< counted from 1
  SimTime start{0};            ///< when the step began
  SimTime duration{0};         ///< until it ended or failed
  Point point;                 ///< the parameters it ran at
  StepResult result = StepResult::ok;
  MemoryView memory;              ///< as a program sees it right after the step
  Bytes step_peak_allocated = 0;  ///< highest allocated within this step alone
  Bytes step_peak_reserved = 0;   ///< highest reserved within this step alone
  bool kept = true;               ///< false: a restart went back behind it, its work is lost
  Point delta;                    ///< change made after it, in force from the next step; empty = none
  std::string reason;             ///< why, or why not; empty where the policy evaluated nothing
};

}  // namespace vramlab
