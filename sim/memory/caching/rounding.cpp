#include "sim/memory/caching/rounding.hpp"

namespace vramlab {

// With legal settings the step is at least 512, so the result stays a multiple of it.
Bytes round_by_divisions(Bytes size, std::uint64_t divisions) {
  if (std::has_single_bit(size)) return size;
  const Bytes power = std::bit_floor(size);
  const Bytes step = power >> (std::bit_width(divisions) - 1);
  return step == 0 ? 2 * power : round_up(size, step);
}

}  // namespace vramlab
