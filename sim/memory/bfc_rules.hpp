// The arithmetic of the BFC allocator (section 12.2): sizes, bins, and how it backs off.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "sim/core/units.hpp"

namespace vramlab {

/// Every chunk is a multiple of this, and so is every address in a region.
inline constexpr Bytes kBfcUnit = 256;
inline constexpr std::size_t kBfcBins = 21;

constexpr Bytes bfc_rounded(Bytes size) { return round_up(size, kBfcUnit); }

/// Bin of a free chunk: bin k holds [256·2^k, 256·2^(k+1)), the last one everything from 256 MiB on.
constexpr std::size_t bfc_bin_of(Bytes size) {
  const auto log2 = static_cast<std::size_t>(std::bit_width(std::max(size, kBfcUnit)) - 1);
  return std::min(kBfcBins - 1, log2 - 8);
}

/// What is asked for after the device refused `size`: nine tenths of it. The product is one of 32-bit floats,
/// which shows in the last digits, and is rounded up to 256; from 2,304 bytes down it shrinks no more.
constexpr Bytes bfc_backed_off(Bytes size) {
  return bfc_rounded(static_cast<Bytes>(static_cast<float>(size) * 0.9F));
}

}  // namespace vramlab
