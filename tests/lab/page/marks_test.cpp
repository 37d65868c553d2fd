#include <numeric>

#include <gtest/gtest.h>

#include "lab/page/drawing.hpp"

namespace vramlab {
namespace {

using Marks = std::vector<RunMark>;

TEST(RunMarks, FewMarksStayAsTheyAre) {
  const Marks marks{{1, 1, 1}, {2, 2, 3}, {2, 2, 1}, {900, 900, 1}};
  EXPECT_EQ(merged_marks(marks, 4), marks);
  EXPECT_TRUE(merged_marks({}, 4).empty());
}

// From 10 to 30 in two stretches of 11 iterations: 10 to 20 and 21 to 31.
TEST(RunMarks, MarksOfOneStretchBecomeOneThatSaysHowMany) {
  EXPECT_EQ(merged_marks({{10, 10, 1}, {20, 20, 2}, {21, 21, 1}, {30, 30, 1}}, 2),
            (Marks{{10, 20, 3}, {21, 30, 2}}));
}

TEST(RunMarks, AMarkAloneInItsStretchKeepsItsPlace) {
  EXPECT_EQ(merged_marks({{1, 1, 1}, {2, 2, 1}, {3, 3, 1}, {700, 700, 5}, {1000, 1000, 1}}, 4),
            (Marks{{1, 3, 3}, {700, 700, 5}, {1000, 1000, 1}}));
}

// Every second of a million iterations fails: no OOM is lost, and the page stays small.
TEST(RunMarks, TheCountsOfAMillionIterationsAddUp) {
  Marks marks;
  for (std::int64_t at = 1; at <= 1000000; at += 2) marks.push_back({at, at, 1});
  const Marks merged = merged_marks(marks, 8000);
  EXPECT_LE(merged.size(), 8000u);
  EXPECT_GT(merged.size(), 7900u);
  EXPECT_EQ(merged.front().first, 1);
  EXPECT_EQ(merged.back().last, 999999);
  const auto counted =
      std::accumulate(merged.begin(), merged.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const RunMark& mark) { return sum + mark.count; });
  EXPECT_EQ(counted, 500000u);
}

}  // namespace
}  // namespace vramlab
