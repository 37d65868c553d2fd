#include "lab/page/thinning.hpp"

#include <algorithm>
#include <utility>

namespace vramlab {
namespace {

void add(std::vector<CurvePoint>& curve, const CurvePoint& point) {
  const std::size_t size = curve.size();
  const bool level =
      size >= 2 && curve[size - 1].value == point.value && curve[size - 2].value == point.value;
  if (level) {
    curve.back() = point;
  } else {
    curve.push_back(point);
  }
}

}  // namespace

std::size_t curve_stride(std::size_t count, std::size_t most) {
  if (count <= most) return 1;
  const std::size_t stretches = std::max<std::size_t>(most / 2, 1);
  return (count + stretches - 1) / stretches;
}

std::vector<CurvePoint> thinned_curve(std::size_t count, std::size_t stride,
                                      const std::function<CurvePoint(std::size_t)>& point) {
  std::vector<CurvePoint> curve;
  for (std::size_t first = 0; first < count; first += stride) {
    std::size_t low_at = first;
    std::size_t high_at = first;
    CurvePoint low = point(first);
    CurvePoint high = low;
    for (std::size_t i = first + 1; i < std::min(first + stride, count); ++i) {
      const CurvePoint next = point(i);
      if (next.value < low.value) {
        low = next;
        low_at = i;
      }
      if (next.value > high.value) {
        high = next;
        high_at = i;
      }
    }
    if (low_at > high_at) std::swap(low, high);
    add(curve, low);
    if (low_at != high_at) add(curve, high);
  }
  if (count > 0 && curve.back() != point(count - 1)) add(curve, point(count - 1));
  return curve;
}

std::vector<RunMark> merged_marks(const std::vector<RunMark>& marks, std::size_t most) {
  if (marks.size() <= most) return marks;
  const std::int64_t begin = marks.front().first;
  const auto stretches = static_cast<std::int64_t>(std::max<std::size_t>(most, 1));
  const std::int64_t stretch = (marks.back().first - begin) / stretches + 1;
  std::vector<RunMark> merged;
  for (const RunMark& mark : marks) {
    const bool together =
        !merged.empty() && (merged.back().first - begin) / stretch == (mark.first - begin) / stretch;
    if (together) {
      merged.back().last = std::max(merged.back().last, mark.last);
      merged.back().count += mark.count;
    } else {
      merged.push_back(mark);
    }
  }
  return merged;
}

}  // namespace vramlab
