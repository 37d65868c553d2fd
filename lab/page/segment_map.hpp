// The address space of an allocator over its history: which of it is reserved, and how much of that is live.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/page/thinning.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// A rectangle of the map: entries [from, to), rows [first, last).
struct SegmentCell {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  /// 0 = reserved and idle; n = the most that was live is above (n − 1) and at most n quarters of what is
  /// reserved.
  std::uint8_t state = 0;
  friend bool operator==(const SegmentCell&, const SegmentCell&) = default;
};

/// Rows are pieces of address space of one size; holes between segments are left out.
struct SegmentMap {
  struct Range {
    std::uint32_t row = 0;  ///< its first
    Address address = 0;    ///< where that row begins
  };
  struct Mark {
    std::uint64_t entry = 0;
    std::string text;
  };
  Bytes row_bytes = 0;
  std::uint32_t rows = 0;
  std::vector<Range> ranges;  ///< ascending
  std::vector<SegmentCell> cells;
  std::vector<CurvePoint> live;      ///< bytes in blocks after each entry
  std::vector<CurvePoint> reserved;  ///< bytes in segments
  std::uint64_t entries = 0;
  std::uint64_t stride = 1;  ///< entries that one column of cells stands for
  std::vector<Mark> marks;   ///< what began at an entry, ascending; may be filled by the caller
};

/// The map of a history that begins with an empty allocator. At most 800 columns, and some 240 rows more than
/// there are ranges.
SegmentMap segment_map(const std::vector<TraceEntry>& history);

}  // namespace vramlab
