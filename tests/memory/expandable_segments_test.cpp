// R5.1 to R5.11 and vector V8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Action = AllocatorEvent::Action;

constexpr const char* kOn = "expandable_segments:True";

struct ExpandableRig : Rig {
  explicit ExpandableRig(Bytes total = 80_GiB, const std::string& conf = kOn) : Rig(total, conf) {}

  /// Offset and size in MiB of the free blocks of the only segment.
  [[nodiscard]] std::vector<std::pair<Bytes, Bytes>> holes() const {
    std::vector<std::pair<Bytes, Bytes>> list;
    const SegmentView segment = allocator.segments().at(0);
    for (const BlockView& block : segment.blocks) {
      if (block.state == BlockState::inactive) {
        list.emplace_back((block.address - segment.base) / 1_MiB, block.size / 1_MiB);
      }
    }
    return list;
  }
};

// A worked example of R5.
TEST(ExpandableSegments, FollowTheWorkedExample) {
  ExpandableRig rig;
  const BlockId thirty = rig.take(30_MiB);
  EXPECT_EQ(rig.reserved(), 40_MiB);
  EXPECT_THAT(rig.holes(), ElementsAre(std::pair(30, 10)));
  rig.take(12_MiB);
  EXPECT_EQ(rig.reserved(), 60_MiB);
  EXPECT_THAT(rig.holes(), ElementsAre(std::pair(42, 18)));
  rig.give(thirty);
  EXPECT_THAT(rig.holes(), ElementsAre(std::pair(0, 30), std::pair(42, 18)));
  const BlockId fifteen = rig.take(15_MiB);  // the hole inside, not the growing end
  EXPECT_THAT(rig.holes(), ElementsAre(std::pair(15, 15), std::pair(42, 18)));
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 60_MiB);
  rig.give(fifteen);
  EXPECT_THAT(rig.holes(), ElementsAre(std::pair(0, 30), std::pair(42, 18)));
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 40_MiB);
  EXPECT_THAT(rig.holes(), ElementsAre(std::pair(20, 10), std::pair(42, 18)));
  rig.take(25_MiB);
  EXPECT_EQ(rig.reserved(), 60_MiB);
  EXPECT_THAT(rig.holes(), ElementsAre(std::pair(25, 5), std::pair(42, 18)));

  EXPECT_EQ(rig.stats().num_device_alloc, 3);
  EXPECT_EQ(rig.stats().num_device_free, 1);
  EXPECT_EQ(rig.segment_count(), 0);
  EXPECT_EQ(rig.stats().segment.all().peak, 0);
  EXPECT_EQ(rig.stats().inactive_split.all(), Stat{});  // R5.6
  rig.expect_sound();
}

// R5.2: small pools map 2 MiB pages, large ones 20 MiB pages; one segment a pool and stream.
TEST(ExpandableSegments, HaveOneRangeForEachPoolAndStream) {
  ExpandableRig rig;
  rig.take(512);
  EXPECT_EQ(rig.reserved(), 2_MiB);
  rig.take(3_MiB);
  EXPECT_EQ(rig.reserved(), 22_MiB);
  rig.take(3_MiB, 7);
  EXPECT_EQ(rig.reserved(), 42_MiB);
  rig.take(3_MiB, 7);
  EXPECT_EQ(rig.reserved(), 42_MiB);
  const auto segments = rig.allocator.segments();
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].size, 90_GiB);  // 9/8 of the card
  // R10.9: the lowest gaps above 0x302000000.
  EXPECT_EQ(segments[0].base, 0x302000000u);
  EXPECT_EQ(segments[1].base, 0x302000000u + 90_GiB);
}

// R5.4: the page follows large_segment_size_mb as it was when the segment was made.
TEST(ExpandableSegments, KeepTheirPageSize) {
  ExpandableRig rig(80_GiB, "expandable_segments:True,large_segment_size_mb:64");
  rig.take(3_MiB);
  EXPECT_EQ(rig.reserved(), 64_MiB);
  rig.allocator.set_settings("large_segment_size_mb:20");
  rig.take(62_MiB);
  EXPECT_EQ(rig.reserved(), 128_MiB);
}

// R3.1.2: any remainder of 512 bytes is cut off.
TEST(ExpandableSegments, SplitLargeBlocksFinely) {
  ExpandableRig rig;
  rig.take(20_MiB - 512);
  EXPECT_EQ(rig.allocated(), 20_MiB - 512);
}

// R5.4, R5.5: nothing of a failed map call stays, what earlier calls mapped does.
TEST(ExpandableSegments, MapAllPagesOfACallOrNone) {
  ExpandableRig rig(110_MiB);
  rig.take(50_MiB);  // maps 60
  EXPECT_TRUE(rig.fails(70_MiB));
  EXPECT_EQ(rig.reserved(), 60_MiB);
  EXPECT_EQ(rig.stats().num_device_alloc, 1);
  rig.take(45_MiB);  // 10 cached + 40 mapped
  EXPECT_EQ(rig.reserved(), 100_MiB);
  EXPECT_EQ(rig.card.free(), 10_MiB);
}

// R5.5: the first map call of a request fills the hole, the second one fails.
TEST(ExpandableSegments, KeepWhatAnEarlierMapCallOfAFailedRequestGot) {
  Rig plain(1_GiB);
  SimulatedCard card(1_GiB, 0);
  SimSegments segments(card);
  FailOnNth failing(segments, 4);
  CachingAllocator allocator(failing, with_settings(kOn));
  const auto a = allocator.allocate(20_MiB, 0);
  const auto b = allocator.allocate(20_MiB, 0);
  ASSERT_TRUE(a && b);
  allocator.free(a->block);
  allocator.empty_cache();  // unmaps the first page: a hole of 20 MiB before b
  ASSERT_EQ(card.taken(), 20_MiB);
  allocator.free(b->block);
  // Starts in the hole: maps it (third call), then the tail behind b (fourth call, refused); the full release
  // that follows gives all pages back, and the retry maps everything anew.
  const auto c = allocator.allocate(60_MiB, 0);
  ASSERT_TRUE(c);
  EXPECT_EQ(allocator.stats().num_alloc_retries, 1);
  EXPECT_EQ(card.taken(), 60_MiB);
  for (const std::string& broken : validate(allocator)) ADD_FAILURE() << broken;
}

// R5.7: the limit is checked with the segment size, but whole pages are mapped.
TEST(ExpandableSegments, MayOvershootTheLimitAndRefuseNeedlessly) {
  Rig rig(1_GiB, with_settings(kOn, 24_MiB));
  rig.take(12_MiB);
  EXPECT_EQ(rig.reserved(), 20_MiB);
  EXPECT_TRUE(rig.fails(10_MiB));  // 2 MiB more would do, but 20 + 10 > 24
  rig.allocator.set_limit(30_MiB);
  rig.take(10_MiB);
  EXPECT_EQ(rig.reserved(), 40_MiB);
}

// R5.8: an emptied segment is destroyed, its range used again.
TEST(ExpandableSegments, VanishWhenNothingIsMapped) {
  ExpandableRig rig;
  History history;
  rig.allocator.set_listener(&history);
  rig.give(rig.take(30_MiB));
  rig.allocator.empty_cache();
  EXPECT_THAT(rig.allocator.segments(), IsEmpty());
  EXPECT_EQ(rig.card.taken(), 0u);
  const BlockId again = rig.take(3_MiB, 5);
  EXPECT_EQ(rig.allocator.address_of(again), 0x302000000u);
  EXPECT_THAT(history.actions(),
              ElementsAre(Action::segment_map, Action::alloc, Action::free_requested, Action::free_completed,
                          Action::segment_unmap, Action::segment_map, Action::alloc));
  EXPECT_EQ(history.events[0].size, 40_MiB);
  EXPECT_EQ(history.events[4].size, 40_MiB);
}

// R2.4, R5.9: with the option off again, new requests pass over expandable blocks.
TEST(ExpandableSegments, AreLeftAloneWhenTheOptionIsOff) {
  ExpandableRig rig;
  rig.give(rig.take(30_MiB));
  rig.allocator.set_settings("expandable_segments:False");
  rig.take(30_MiB);
  EXPECT_EQ(rig.reserved(), 70_MiB);
  EXPECT_EQ(rig.segment_count(), 1);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 30_MiB);
}

// R2.2, R5.9: with the option on, cached plain blocks are still used and cut at 512 bytes.
TEST(ExpandableSegments, LeavePlainBlocksInUse) {
  Rig rig;
  rig.give(rig.take(30_MiB));
  rig.allocator.set_settings(kOn);
  rig.take(30_MiB - 512);
  EXPECT_EQ(rig.reserved(), 30_MiB);
  EXPECT_EQ(rig.inactive_split_bytes(), 512u);  // the counters follow the kind of the block
  rig.expect_sound();
}

// R5.1: a pool with an allocator of its own never uses them.
TEST(ExpandableSegments, AreNotForCustomAllocators) {
  ExpandableRig rig;
  const PoolId pool =
      rig.allocator.new_mem_pool({.use_on_oom = false, .no_split = false, .custom_allocator = true});
  rig.allocator.enter_mem_pool(pool);
  rig.take(3_MiB);
  rig.allocator.leave_mem_pool(pool);
  EXPECT_EQ(rig.segment_count(), 1);
}

// R2.7: a region that max_split_size refuses can still serve a request through the growing path.
TEST(ExpandableSegments, MayUseARefusedBlockWithoutMappingAnything) {
  ExpandableRig rig(80_GiB, "expandable_segments:True,max_split_size_mb:32");
  const BlockId big = rig.take(100_MiB);
  rig.give(big);
  rig.take(20_MiB);  // refused by the search, found again before the unmapped tail
  EXPECT_EQ(rig.reserved(), 100_MiB);
  EXPECT_EQ(rig.stats().num_device_alloc, 1);
}

/// Four blocks of whole pages, 40, 60, 20 and 80 MiB from the segment's base on; the second is a hole.
struct HoleRig : ExpandableRig {
  HoleRig() {
    for (const Bytes size : {40_MiB, 60_MiB, 20_MiB, 80_MiB}) blocks.push_back(take(size));
    give(blocks[1]);
    allocator.empty_cache();
  }

  /// MiB from the segment's base.
  [[nodiscard]] Bytes place(BlockId block) const {
    return (allocator.address_of(block) - allocator.segments().at(0).base) / 1_MiB;
  }

  std::vector<BlockId> blocks;
};

// R2.3: the extent is the block and the unmapped memory behind it: 40 + 60 before a hole is less than 80 and
// the growing end.
TEST(ExpandableSegments, PreferTheBlockWithTheLeastExtent) {
  HoleRig rig;
  EXPECT_EQ(rig.reserved(), 140_MiB);
  rig.give_all({rig.blocks[0], rig.blocks[3]});
  EXPECT_EQ(rig.place(rig.take(30_MiB)), 0u);
  EXPECT_EQ(rig.reserved(), 140_MiB);
  rig.expect_sound();
}

// R5.3.1 and R5.3.3: a hole that just suffices does, and nothing more is mapped.
TEST(ExpandableSegments, FillAHoleToItsLastByte) {
  HoleRig rig;
  EXPECT_EQ(rig.place(rig.take(60_MiB)), 40u);
  EXPECT_EQ(rig.reserved(), 200_MiB);
  EXPECT_EQ(rig.stats().num_device_alloc, 5);
  rig.expect_sound();
}

// R5.3.1: a hole that was too short counts again with the blocks that become free beside it.
TEST(ExpandableSegments, GrowFromAFreedBlockIntoTheHoleBehindIt) {
  HoleRig rig;
  EXPECT_EQ(rig.place(rig.take(80_MiB)), 200u);  // at the growing end
  rig.give(rig.blocks[0]);
  EXPECT_EQ(rig.place(rig.take(100_MiB)), 0u);
  EXPECT_EQ(rig.reserved(), 280_MiB);
  rig.expect_sound();
}

// R5.8: only whole pages of a cached block are given back; what lies around them stays.
TEST(ExpandableSegments, KeepBothEndsOfAnUnmappedBlock) {
  ExpandableRig rig;
  rig.take(10_MiB);
  const BlockId middle = rig.take(40_MiB);  // from 10 to 50: the page from 20 to 40 is its own
  rig.take(10_MiB);
  rig.give(middle);
  rig.allocator.empty_cache();
  EXPECT_THAT(rig.holes(), ElementsAre(std::pair(10, 10), std::pair(40, 10)));
  EXPECT_EQ(rig.reserved(), 40_MiB);
  rig.expect_sound();
}

}  // namespace
}  // namespace vramlab
