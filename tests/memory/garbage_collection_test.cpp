// R6.1 to R6.4 and vector V9.
#include <gtest/gtest.h>

#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

/// Lets the search counter of the large pool tick `n` times without changing the cache.
void tick(Rig& rig, int n) {
  for (int i = 0; i < n; ++i) {
    const AllocationResult hit = rig.allocator.allocate(12_MiB, 99);
    rig.allocator.free(hit->block);
  }
}

// V9: limit 1000, threshold 0.8, total 920, free blocks of 100, 50 and 30 MiB with ages 10, 4 and 1.
TEST(GarbageCollection, FreesOldBlocksInPassesUntilEnough) {
  Rig rig(80_GiB, with_settings("garbage_collection_threshold:0.8", 1000_MiB));
  rig.take(728_MiB);
  const BlockId a = rig.take(100_MiB);
  const BlockId b = rig.take(50_MiB);
  const BlockId c = rig.take(30_MiB);
  rig.give(rig.take(12_MiB, 99));  // for tick; in the cache of another stream, always young
  ASSERT_EQ(rig.reserved(), 920_MiB);
  rig.give(a);
  tick(rig, 6);
  rig.give(b);
  tick(rig, 3);
  rig.give(c);
  // The request itself ticks once: ages 10, 4, 1 and that of the 12 MiB block, which is 1 as well:
  // θ = 16/4 = 4 frees A and B at once, 150 ≥ 120.
  rig.take(60_MiB, 5);
  EXPECT_EQ(rig.reserved(), 920_MiB - 150_MiB + 60_MiB);
  EXPECT_EQ(rig.stats().num_device_free, 2);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 0);
}

// R6.4: the same without the young block: a first pass with θ = 5, a second with θ = 2.5.
TEST(GarbageCollection, TakesAsManyPassesAsItNeeds) {
  Rig rig(80_GiB, with_settings("garbage_collection_threshold:0.8", 1000_MiB));
  rig.take(728_MiB);
  const BlockId a = rig.take(100_MiB);
  const BlockId b = rig.take(50_MiB);
  const BlockId c = rig.take(30_MiB);
  const BlockId ticker = rig.take(12_MiB, 99);
  rig.give(a);
  for (int i = 0; i < 6; ++i) {  // hits of another stream, which leave these blocks alone
    rig.give(ticker);
    ASSERT_EQ(rig.allocator.address_of(rig.take(12_MiB, 99)), rig.allocator.address_of(ticker));
  }
  rig.give(b);
  for (int i = 0; i < 3; ++i) {
    rig.give(ticker);
    ASSERT_EQ(rig.allocator.address_of(rig.take(12_MiB, 99)), rig.allocator.address_of(ticker));
  }
  rig.give(c);
  rig.take(60_MiB, 5);  // ages 10, 4, 1
  EXPECT_EQ(rig.reserved(), 920_MiB - 150_MiB + 60_MiB);
  EXPECT_EQ(rig.stats().num_device_free, 2);
}

// R6.2: exactly on the threshold nothing happens.
TEST(GarbageCollection, StartsAboveTheThreshold) {
  Rig rig(80_GiB, with_settings("garbage_collection_threshold:0.5", 80_MiB));
  rig.give(rig.take(40_MiB));
  rig.take(12_MiB, 3);
  EXPECT_EQ(rig.stats().num_device_free, 0);
  rig.take(14_MiB, 3);  // 52 > 40 now
  EXPECT_EQ(rig.stats().num_device_free, 1);
}

// R6.4: equal ages go together, also beyond the target.
TEST(GarbageCollection, DoesNotCutAPassShort) {
  Rig rig(80_GiB, with_settings("garbage_collection_threshold:0.5", 100_MiB));
  rig.give_all({rig.take(20_MiB), rig.take(20_MiB), rig.take(20_MiB)});
  rig.take(30_MiB, 3);
  EXPECT_EQ(rig.reserved(), 30_MiB);
  EXPECT_EQ(rig.stats().num_device_free, 3);
}

// R6.1, R7.3: split blocks, small blocks and private pools are left alone.
TEST(GarbageCollection, LooksAtWholeBlocksOfTheDefaultLargePoolOnly) {
  Rig rig(80_GiB, with_settings("garbage_collection_threshold:0.5", 100_MiB));
  const PoolId pool = rig.allocator.new_mem_pool();
  rig.allocator.enter_mem_pool(pool);
  rig.give(rig.take(20_MiB));
  rig.allocator.leave_mem_pool(pool);
  rig.give(rig.take(1000));
  rig.take(5_MiB);  // 15 MiB of its segment are cached
  rig.take(20_MiB);
  rig.take(21_MiB, 3);
  EXPECT_EQ(rig.stats().num_device_free, 0);
}

// R6.1: without a limit the threshold does nothing.
TEST(GarbageCollection, NeedsALimit) {
  Rig rig(100_MiB, "garbage_collection_threshold:0.1");
  rig.give(rig.take(40_MiB));
  rig.take(20_MiB, 3);
  EXPECT_EQ(rig.stats().num_device_free, 0);
}

}  // namespace
}  // namespace vramlab
