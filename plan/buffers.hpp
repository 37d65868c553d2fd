// Buffers with known lifetimes, and what their sum says before anything is packed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace vramlab {

/// Memory that is needed from `lower` until just before `upper`, in any unit of time.
struct Buffer {
  std::int64_t lower = 0;
  std::int64_t upper = 0;  ///< above `lower`
  Bytes size = 0;          ///< 0 = it takes no place

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// Most bytes that buffers may have together, so that no sum of theirs overflows.
inline constexpr Bytes kMostBufferBytes = Bytes{1} << 62;

/// Time in pieces at whose borders a buffer begins after another one has ended: within a piece, everything
/// that ever lives there lives at once.
struct Timeline {
  /// A buffer's pieces: from `begin` until before `end`.
  struct Span {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  std::vector<Span> spans;  ///< by buffer
  std::vector<Bytes> load;  ///< by piece: bytes alive in it
  Bytes peak = 0;           ///< the highest load; no plan can do with less
};

/// Throws InputError for a buffer that does not end after it begins, and for more than kMostBufferBytes.
Timeline timeline_of(const std::vector<Buffer>& buffers);

}  // namespace vramlab
