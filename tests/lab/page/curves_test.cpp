#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "lab/page/drawing.hpp"

namespace vramlab {
namespace {

std::vector<CurvePoint> thinned(const std::vector<std::int64_t>& values, std::size_t stride) {
  return thinned_curve(values.size(), stride, [&](std::size_t i) {
    return CurvePoint{static_cast<std::int64_t>(i), values[i]};
  });
}

TEST(RunCurves, EveryPointStaysWhereThereAreFew) {
  EXPECT_EQ(curve_stride(4000, 4000), 1u);
  const std::vector<CurvePoint> all{{0, 3}, {1, 1}, {2, 2}};
  EXPECT_EQ(thinned({3, 1, 2}, 1), all);
}

TEST(RunCurves, APointBetweenTwoEqualOnesIsLeftOut) {
  EXPECT_EQ(thinned({5, 5, 7, 7, 7}, 1), (std::vector<CurvePoint>{{0, 5}, {1, 5}, {2, 7}, {4, 7}}));
}

TEST(RunCurves, AStretchKeepsItsLowestAndHighestInTheirOrder) {
  EXPECT_EQ(thinned({4, 9, 1, 4, 2, 8, 3, 2}, 4),
            (std::vector<CurvePoint>{{1, 9}, {2, 1}, {4, 2}, {5, 8}, {7, 2}}));
}

// The page's budget: a million iterations, 4,000 points, and not one peak lost.
TEST(RunCurves, AMillionPointsKeepEveryPeakOfAStretch) {
  std::vector<std::int64_t> values(1000000, 100);
  std::uint64_t state = 1;  // a fixed sequence
  std::vector<std::size_t> peaks;
  for (int i = 0; i < 1500; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    peaks.push_back((state >> 20) % values.size());
    values[peaks.back()] = 1000 + i;
  }
  const std::size_t stride = curve_stride(values.size(), 4000);
  const auto curve = thinned(values, stride);
  EXPECT_LE(curve.size(), 4001u);
  for (std::size_t first = 0; first < values.size(); first += stride) {
    const std::size_t end = std::min(first + stride, values.size());
    const auto highest = *std::max_element(values.begin() + static_cast<std::ptrdiff_t>(first),
                                           values.begin() + static_cast<std::ptrdiff_t>(end));
    if (highest == 100) continue;
    const bool kept = std::any_of(curve.begin(), curve.end(), [&](const CurvePoint& point) {
      return point.value == highest && point.x >= static_cast<std::int64_t>(first) &&
             point.x < static_cast<std::int64_t>(end);
    });
    EXPECT_TRUE(kept) << "stretch from " << first;
  }
  EXPECT_EQ(curve.back().x, 999999);
}

TEST(RunCurves, NothingGivesNothing) { EXPECT_TRUE(thinned({}, 1).empty()); }

}  // namespace
}  // namespace vramlab
