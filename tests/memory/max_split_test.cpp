// What max_split_size does to search, split and release: R2.5, R2.7, R3.1, R4.7 and vector V7.
#include <gtest/gtest.h>

#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

// V7: 300, 150 and 120 MiB cached on stream 0, and the card full.
struct OversizeRig : Rig {
  OversizeRig() : Rig(570_MiB, "max_split_size_mb:100") {
    give_all({take(300_MiB), take(150_MiB), take(120_MiB)});
  }
  void expect(Bytes allocated, Bytes reserved, int freed) const {
    EXPECT_EQ(Rig::allocated(), allocated);
    EXPECT_EQ(Rig::reserved(), reserved);
    EXPECT_EQ(stats().num_device_free, freed);
    EXPECT_EQ(stats().num_alloc_retries, 0);
    expect_sound();
  }
};

TEST(MaxSplit, UsesAnOversizeBlockOfSimilarSizeWhole) {
  OversizeRig rig;
  rig.take(110_MiB);
  rig.expect(120_MiB, 570_MiB, 0);
}

TEST(MaxSplit, ReleasesOneFittingOversizeBlock) {
  OversizeRig rig;
  rig.take(125_MiB);
  rig.expect(126_MiB, 570_MiB - 150_MiB + 126_MiB, 1);
}

TEST(MaxSplit, ReleasesTheLargestBlocksUntilEnough) {
  OversizeRig rig;
  rig.take(400_MiB);
  rig.expect(400_MiB, 120_MiB + 400_MiB, 2);
}

TEST(MaxSplit, KeepsSmallRequestsOutOfOversizeBlocks) {
  OversizeRig rig;
  rig.take(50_MiB);
  rig.expect(50_MiB, 450_MiB + 50_MiB, 1);
}

// R4.7: what was released stays released although it was not enough.
TEST(MaxSplit, KeepsPartialReleases) {
  Rig rig(300_MiB, "max_split_size_mb:50");
  rig.take(200_MiB);
  const PoolId pool = rig.allocator.new_mem_pool();
  rig.allocator.enter_mem_pool(pool);  // no full release in here
  rig.give(rig.take(60_MiB));
  EXPECT_TRUE(rig.fails(150_MiB));
  EXPECT_EQ(rig.reserved(), 200_MiB);
  rig.allocator.leave_mem_pool(pool);
}

// R2.7: with 20 MB a whole 20 MiB segment is oversize itself and serves nothing below 20 MiB any more.
TEST(MaxSplit, OfTwentyMegabytesNeverReusesTheUsualSegments) {
  Rig rig(1_GiB, "max_split_size_mb:20");
  for (int turn = 1; turn <= 5; ++turn) {
    rig.give(rig.take(5_MiB));
    EXPECT_EQ(rig.reserved(), static_cast<Bytes>(turn) * 20_MiB);
  }
}

// R2.5: both bounds are strict on the side that PyTorch's are.
TEST(MaxSplit, BoundsAreExact) {
  Rig rig(4_GiB, "max_split_size_mb:64,max_non_split_rounding_mb:32");
  rig.give(rig.take(64_MiB));
  rig.take(64_MiB - 512);  // below M: may not have a block of exactly M
  EXPECT_EQ(rig.segment_count(), 2);
  rig.give(rig.take(96_MiB));  // 64 MiB are cached too
  rig.take(64_MiB);            // exactly the cached block
  EXPECT_EQ(rig.segment_count(), 3);
  rig.take(64_MiB);  // 96 is not below 64 + 32
  EXPECT_EQ(rig.segment_count(), 4);
  rig.take(64_MiB + 512);  // 96 is below 64 + 512 B + 32
  EXPECT_EQ(rig.segment_count(), 4);
}

// R4.7: in a plain segment that was cut while expandable segments were on, a piece can be oversize. PyTorch
// hands it to cudaFree and dies of the driver's answer, which is not an OOM.
TEST(MaxSplit, FreesAPieceOfASegmentAsPyTorchDoes) {
  Rig rig(200_MiB);
  rig.give(rig.take(120_MiB));
  rig.allocator.set_settings("expandable_segments:True");
  rig.take(40_MiB);  // cut out of the plain segment
  rig.allocator.set_settings("max_split_size_mb:32");
  EXPECT_THROW(rig.allocator.allocate(100_MiB, kDefaultStream), AllocatorFault);
}

}  // namespace
}  // namespace vramlab
