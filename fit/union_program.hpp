// The settled step of each recorded shape, and one program that holds them all: what belongs together stands
// once.
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
  std::uint32_t stream = 0;  ///< 0 = the default one
};

/// A step with its loops taken out: each body stands once, between `loop` and `end`.
struct ShapeProgram {
  StepParameters parameters;
  std::vector<ShapeAllocation> allocations;
  std::vector<RecordedOp> ops;       ///< `what` counts allocations here, ranks, extras or loops; no groups
  std::vector<std::int64_t> rounds;  ///< by loop
};

/// `step` without loops. What it keeps for good is left out.
ShapeProgram shape_program(const StepRecord& step);

/// A step that keeps something for good, with the number of its shape.
struct MakingStep {
  ShapeProgram program;
  std::size_t shape = 0;
};

/// The same of a step that keeps something for good: that becomes `ensure` operations numbered in order from
/// `first_extra` on, and what older steps kept is not freed.
ShapeProgram making_program(const StepRecord& step, std::uint32_t first_extra);

// One program that holds the steps of all recorded shapes: what belongs together stands once.

/// An allocation of the union: its number in each shape's program, −1 where a shape lacks it.
struct UnionTensor {
  std::vector<std::int32_t> in_shape;

  [[nodiscard]] ShapeSet shapes() const;

  /// What `shapes` have for it at `shape`; null where it is not there.
  [[nodiscard]] const ShapeAllocation* in(const std::vector<ShapeProgram>& shapes, std::size_t shape) const;
};

/// An operation of the union; `what` counts tensors of the union.
struct UnionOp {
  RecordedOp op;
  ShapeSet shapes = 0;
};

struct UnionProgram {
  std::vector<UnionTensor> tensors;  ///< in the order of their allocation
  std::vector<UnionOp> ops;
};

/// Merges the programs of several shapes; `monomials` are the values, by shape, of the products that may
/// relate sizes (the first is the number 1), `in_loops` those that relate sizes of first rounds. Each of
/// `making` (the first step of a process, and later ones that make something for good) adds its `ensure`
/// operations, for all shapes, and nothing else.
///
/// Allocations are aligned first: the longest common subsequence against the union so far, longest program
/// first and the larger one of two equally long ones, where two may be the same if one product relates their
/// sizes (score 30), they differ by at most 7 % (10), or both are above 1 MiB and within a factor of 4 (6).
/// Then all operations are.
UnionProgram merge_shapes(const std::vector<ShapeProgram>& shapes,
                          const std::vector<std::vector<std::int64_t>>& monomials,
                          const std::vector<std::vector<std::int64_t>>& in_loops,
                          const std::vector<MakingStep>& making);

}  // namespace vramlab
