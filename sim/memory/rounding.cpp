#include "sim/memory/rounding.hpp"

#include <algorithm>
#include <bit>

namespace vramlab {
namespace {

// R1.3. With legal settings the step is at least 512, so the result stays a multiple of it.
Bytes round_by_divisions(Bytes size, std::uint64_t divisions) {
  if (std::has_single_bit(size)) return size;
  const Bytes power = std::bit_floor(size);
  const Bytes step = power >> (std::bit_width(divisions) - 1);
  return step == 0 ? 2 * power : round_up(size, step);
}

}  // namespace

// R1.4: entry 0 covers everything below 2 MiB, entry 15 everything from 32 GiB.
std::uint64_t roundup_divisions(Bytes size, const AllocatorSettings& settings) {
  const int log2 = static_cast<int>(std::bit_width(size)) - 1;
  return settings.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(log2 - 20, 0, 15))];
}

// R1.2
Bytes rounded_size(Bytes size, const AllocatorSettings& settings) {
  if (size < kMinBlock) return kMinBlock;
  const std::uint64_t divisions = roundup_divisions(size, settings);
  if (divisions > 1 && size > kMinBlock * divisions) return round_by_divisions(size, divisions);
  return round_up(size, kMinBlock);
}

// R1.7: the option moves the size of these segments, not the boundary at 10 MiB.
Bytes segment_size(Bytes rounded, const AllocatorSettings& settings) {
  if (is_small(rounded)) return kSmallSegment;
  if (rounded < kOwnSegmentLimit) return settings.large_segment_size;
  return round_up(rounded, kLargeRounding);
}

}  // namespace vramlab
