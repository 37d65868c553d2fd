// What the page of a report draws, made small enough for it: curves, marks, and the map of an address space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

struct CurvePoint {
  std::int64_t x = 0;
  std::int64_t value = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// How many points one pair stands for, so that `most` are not exceeded (by more than the last one);
/// 1 = each is there.
std::size_t curve_stride(std::size_t count, std::size_t most);

/// Makes a curve small while its points come one after another: of each stretch of `stride` the lowest and
/// the highest stay, in the order they came; a point between two equal ones is left out. The last one is
/// there always.
class CurveThinner {
 public:
  explicit CurveThinner(std::size_t stride) : stride_(stride) {}

  void add(const CurvePoint& point);
  /// Everything that came. Last of all calls.
  std::vector<CurvePoint> finish();

 private:
  void end_stretch();

  std::size_t stride_;
  std::size_t count_ = 0;  ///< points of the stretch so far
  CurvePoint low_;
  CurvePoint high_;
  bool high_first_ = false;
  CurvePoint last_;
  std::vector<CurvePoint> curve_;
};

/// The points `point(0)` … `point(count − 1)`, thinned so.
std::vector<CurvePoint> thinned_curve(std::size_t count, std::size_t stride,
                                      const std::function<CurvePoint(std::size_t)>& point);

// Marks on a report's axis, merged where they are too many for a page; none is lost.

/// What happened `count` times, at `first` the first time and at `last` the last.
struct RunMark {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::uint64_t count = 1;
  friend bool operator==(const RunMark&, const RunMark&) = default;
};

/// `marks`, ascending, where they are at most `most`. Else the span from the first to the last is cut into
/// `most` stretches, and those that begin in one become one: no place moves by more than a stretch, and the
/// counts add up to what they did.
std::vector<RunMark> merged_marks(const std::vector<RunMark>& marks, std::size_t most);

// The address space of an allocator over its history: which of it is reserved, and how much of that is live.

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

/// What must be known of a history before its map can be made while it goes by once more.
class SegmentSurvey {
 public:
  void add(const TraceEntry& entry);
  [[nodiscard]] std::uint64_t entries() const { return entries_; }
  /// What was reserved at some time, by its beginning: the end. Neighbours are one.
  [[nodiscard]] const std::map<Address, Address>& reserved() const { return reserved_; }

 private:
  std::uint64_t entries_ = 0;
  std::map<Address, Address> reserved_;
};

/// The map of the history that `survey` saw, entry by entry; its memory does not grow with them.
class SegmentMapMaker {
 public:
  explicit SegmentMapMaker(const SegmentSurvey& survey);
  ~SegmentMapMaker();
  SegmentMapMaker(const SegmentMapMaker&) = delete;
  SegmentMapMaker& operator=(const SegmentMapMaker&) = delete;

  void add(const TraceEntry& entry);
  /// Without marks. Last of all calls.
  SegmentMap finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vramlab
