// Curves and marks of a report, thinned so that a page of a million points opens at once and no peak is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace vramlab {

struct CurvePoint {
  std::int64_t x = 0;
  std::int64_t value = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// How many points one pair stands for, so that `most` are not exceeded (by more than the last one);
/// 1 = each is there.
std::size_t curve_stride(std::size_t count, std::size_t most);

/// The points `point(0)` … `point(count − 1)`. Of each stretch of `stride` the lowest and the highest stay,
/// in the order they came; a point between two equal ones is left out. The last one is there always.
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

}  // namespace vramlab
