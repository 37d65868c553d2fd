// What calls of the CUDA driver cost in time (R10.6). Orders of magnitude: a second run of the same test was
// slower by a factor of 1.1 to 3.4.
#pragma once

#include "sim/core/units.hpp"

namespace vramlab {

/// cudaMalloc of `size` bytes.
SimTime malloc_time(Bytes size);
/// cudaFree of a segment of `size` bytes.
SimTime free_time(Bytes size);
/// Creating `pages` physical pages and mapping them, `size` bytes in all.
SimTime map_time(Bytes size, Bytes pages);
/// Unmapping `size` bytes.
SimTime unmap_time(Bytes size);

}  // namespace vramlab
