// What a library asks for when a workspace is refused, carried over from a recorded shape to another.
#pragma once

#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// The sizes that follow a refused first choice of `own` bytes (> 0), from `recorded`: those asked for at
/// another shape, the first choice in front, none of them 0.
///
/// A size within a tenth of the first choice is that of a kernel that copies the same tensors and has another
/// constant of its own; the constant is kept. Any other size is a multiple of the tensors and grows with
/// them.
std::vector<Bytes> attempts_at(const std::vector<Bytes>& recorded, Bytes own);

}  // namespace vramlab
