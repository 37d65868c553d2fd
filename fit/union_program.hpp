// One program that holds the steps of all recorded shapes: what belongs together stands once.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/shape_program.hpp"

namespace vramlab {

/// An allocation of the union: its number in each shape's program, −1 where a shape lacks it.
struct UnionTensor {
  std::vector<std::int32_t> in_shape;

  [[nodiscard]] ShapeSet shapes() const;
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
/// relate sizes (the first is the number 1). `first_step` is the first step of a process at the shape
/// `first_shape`: it adds its `ensure` operations, for all shapes, and nothing else.
///
/// Allocations are aligned first: the longest common subsequence against the union so far, longest program
/// first and the larger one of two equally long ones, where two may be the same if one product relates their
/// sizes (score 30), they differ by at most 7 % (10), or both are above 1 MiB and within a factor of 4 (6).
/// Then all operations are.
UnionProgram merge_shapes(const std::vector<ShapeProgram>& shapes,
                          const std::vector<std::vector<std::int64_t>>& monomials,
                          const ShapeProgram& first_step, std::size_t first_shape);

}  // namespace vramlab
