// From what a program asks for to the size of a block, its pool and its segment (R1).
#pragma once

#include <algorithm>
#include <bit>

#include "core/units.hpp"
#include "sim/memory/caching/allocator_settings.hpp"

namespace vramlab {

inline constexpr Bytes kMinBlock = 512;            ///< every block size is a multiple of it
inline constexpr Bytes kSmallLimit = 1_MiB;        ///< largest block of a small pool (R1.6)
inline constexpr Bytes kSmallSegment = 2_MiB;      ///< segments and pages of small pools
inline constexpr Bytes kOwnSegmentLimit = 10_MiB;  ///< from here on a request gets a segment of its own size
inline constexpr Bytes kLargeRounding = 2_MiB;     ///< what those segments are multiples of
inline constexpr Bytes kAbsurdSize = Bytes{1} << 60;  ///< refused at once (R1.1)

/// The power-of-two division count that governs a request of `size` bytes, 0 = none (R1.4).
/// Entry 0 covers everything below 2 MiB, entry 15 everything from 32 GiB.
inline std::uint64_t roundup_divisions(Bytes size, const AllocatorSettings& settings) {
  const int log2 = static_cast<int>(std::bit_width(size)) - 1;
  return settings.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(log2 - 20, 0, 15))];
}

/// R1.3, for a size above 512·divisions with divisions > 1. With legal settings the step is at least 512, so
/// the result stays a multiple of it.
constexpr Bytes round_by_divisions(Bytes size, std::uint64_t divisions) {
  if (std::has_single_bit(size)) return size;
  const Bytes power = std::bit_floor(size);
  const Bytes step = power >> (std::bit_width(divisions) - 1);
  return step == 0 ? 2 * power : round_up(size, step);
}

/// The block size S for a request of `size` bytes, 1 ≤ size < kAbsurdSize (R1.2, R1.3).
inline Bytes rounded_size(Bytes size, const AllocatorSettings& settings) {
  if (size < kMinBlock) return kMinBlock;
  const std::uint64_t divisions = roundup_divisions(size, settings);
  if (divisions > 1 && size > kMinBlock * divisions) return round_by_divisions(size, divisions);
  return round_up(size, kMinBlock);
}

/// Whether blocks of this rounded size live in a small pool (R1.6).
constexpr bool is_small(Bytes rounded) { return rounded <= kSmallLimit; }

/// The segment size A for a rounded size (R1.7). The option moves the size of these segments, not the
/// boundary at 10 MiB.
inline Bytes segment_size(Bytes rounded, const AllocatorSettings& settings) {
  if (is_small(rounded)) return kSmallSegment;
  if (rounded < kOwnSegmentLimit) return settings.large_segment_size;
  return round_up(rounded, kLargeRounding);
}

}  // namespace vramlab
