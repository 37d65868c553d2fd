// From what a program asks for to the size of a block, its pool and its segment (section 1 of the rules).
#pragma once

#include "sim/core/units.hpp"
#include "sim/memory/allocator_settings.hpp"

namespace vramlab {

inline constexpr Bytes kMinBlock = 512;            ///< every block size is a multiple of it
inline constexpr Bytes kSmallLimit = 1_MiB;        ///< largest block of a small pool (R1.6)
inline constexpr Bytes kSmallSegment = 2_MiB;      ///< segments and pages of small pools
inline constexpr Bytes kOwnSegmentLimit = 10_MiB;  ///< from here on a request gets a segment of its own size
inline constexpr Bytes kLargeRounding = 2_MiB;     ///< what those segments are multiples of
inline constexpr Bytes kAbsurdSize = Bytes{1} << 60;  ///< refused at once (R1.1)

/// The power-of-two division count that governs a request of `size` bytes, 0 = none (R1.4).
std::uint64_t roundup_divisions(Bytes size, const AllocatorSettings& settings);

/// The block size S for a request of `size` bytes, 1 ≤ size < kAbsurdSize (R1.2, R1.3).
Bytes rounded_size(Bytes size, const AllocatorSettings& settings);

/// Whether blocks of this rounded size live in a small pool (R1.6).
constexpr bool is_small(Bytes rounded) { return rounded <= kSmallLimit; }

/// The segment size A for a rounded size (R1.7).
Bytes segment_size(Bytes rounded, const AllocatorSettings& settings);

}  // namespace vramlab
