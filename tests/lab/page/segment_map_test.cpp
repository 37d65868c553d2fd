#include <algorithm>

#include <gtest/gtest.h>

#include "lab/page/drawing.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;

TraceEntry entry(Action action, Address address, Bytes size) {
  return {.address = address, .size = size, .action = action};
}

constexpr Address kBase = 0x7f0000000000;

TEST(SegmentMap, ShowsWhatIsLiveAndWhatLiesIdle) {
  const SegmentMap map = segment_map({
      entry(Action::segment_alloc, kBase, 240_MiB),   // 240 rows of 1 MiB
      entry(Action::alloc, kBase, 120_MiB),           //
      entry(Action::free_requested, kBase, 120_MiB),  // changes nothing
      entry(Action::free_completed, kBase, 120_MiB),  //
      entry(Action::segment_free, kBase, 240_MiB),
  });
  EXPECT_EQ(map.row_bytes, 1_MiB);
  EXPECT_EQ(map.rows, 240u);
  ASSERT_EQ(map.ranges.size(), 1u);
  EXPECT_EQ(map.ranges[0].address, kBase);
  // A column shows the most within it: the block is live in the entry that frees it, the segment reserved in
  // the one that returns it.
  const std::vector<SegmentCell> cells{
      {0, 1, 0, 120, 0}, {1, 4, 0, 120, 4}, {4, 5, 0, 120, 0}, {0, 5, 120, 240, 0}};
  EXPECT_EQ(map.cells.size(), cells.size());
  for (const SegmentCell& cell : cells) {
    EXPECT_NE(std::find(map.cells.begin(), map.cells.end(), cell), map.cells.end())
        << cell.from << " " << cell.first;
  }
  EXPECT_EQ(map.live, (std::vector<CurvePoint>{{0, 0}, {1, 125829120}, {2, 125829120}, {3, 0}, {4, 0}}));
  EXPECT_EQ(map.reserved.front().value, 251658240);
  EXPECT_EQ(map.reserved.back().value, 0);
}

TEST(SegmentMap, LeavesOutHolesAndJoinsNeighbours) {
  const SegmentMap map = segment_map({
      entry(Action::segment_alloc, kBase, 2_MiB),
      entry(Action::segment_map, kBase + 2_MiB, 2_MiB),
      entry(Action::segment_alloc, kBase + 1_GiB, 2_MiB),
  });
  ASSERT_EQ(map.ranges.size(), 2u);
  EXPECT_EQ(map.ranges[0].row, 0u);
  EXPECT_EQ(map.ranges[1].address, kBase + 1_GiB);
  EXPECT_EQ(map.ranges[1].row * map.row_bytes, 4_MiB);
}

TEST(SegmentMap, AQuarterLiveIsSaidSo) {
  const SegmentMap map =
      segment_map({entry(Action::segment_alloc, kBase, 120_KiB), entry(Action::alloc, kBase, 512)});
  EXPECT_EQ(map.row_bytes, 512u);  // never finer than the allocator's own unit
  ASSERT_FALSE(map.cells.empty());
  const SegmentMap coarse =
      segment_map({entry(Action::segment_alloc, kBase, 480_KiB), entry(Action::alloc, kBase, 512)});
  EXPECT_EQ(coarse.row_bytes, 2048u);
  EXPECT_NE(std::find(coarse.cells.begin(), coarse.cells.end(), SegmentCell{1, 2, 0, 1, 1}),
            coarse.cells.end());
}

TEST(SegmentMap, AnEmptyHistoryIsAnEmptyMap) { EXPECT_TRUE(segment_map({}).cells.empty()); }

}  // namespace
}  // namespace vramlab
