// The settled step of one recorded shape, ready to be compared with those of other shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/step_record.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// One allocation; inside a loop it stands for those of all rounds.
struct ShapeAllocation {
  std::vector<Bytes> sizes;  ///< one a round; one outside loops
  std::int32_t loop = -1;    ///< number of its loop; −1 = none
  std::int32_t kept = -1;    ///< rank, if it lives until the next step
  bool brief = false;        ///< freed within three actions of its birth: a workspace by its life
};

/// A step with its loops taken out: each body stands once, between `loop` and `end`.
struct ShapeProgram {
  StepParameters parameters;
  std::vector<ShapeAllocation> allocations;
  std::vector<RecordedOp> ops;       ///< `what` counts allocations here, ranks, extras or loops; no groups
  std::vector<std::int64_t> rounds;  ///< by loop
};

/// `step` without loops. What it keeps for good is left out. With `extras` (a first step) it becomes
/// `ensure` operations numbered in order, and what older steps kept is not freed.
ShapeProgram shape_program(const StepRecord& step, bool extras);

}  // namespace vramlab
