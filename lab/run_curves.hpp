// Curves, thinned so that a page of a million points opens at once and no peak is lost.
#pragma once

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

}  // namespace vramlab
