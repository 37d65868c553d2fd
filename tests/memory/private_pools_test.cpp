// R7.1 to R7.5 and R7.9: graph captures and MemPools.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

constexpr StreamId kSide = 77;

struct PoolRig : Rig {
  using Rig::Rig;
  BlockId take_in(PoolId pool, Bytes size) {
    allocator.enter_mem_pool(pool);
    const BlockId block = take(size);
    allocator.leave_mem_pool(pool);
    return block;
  }
  [[nodiscard]] PoolId pool_of(BlockId block) const {
    for (const SegmentView& segment : allocator.segments()) {
      for (const BlockView& view : segment.blocks) {
        if (view.id == block) return segment.pool;
      }
    }
    return kDefaultPool;
  }
};

// R7.1
TEST(PrivatePools, TakeRequestsOfTheirContextOnly) {
  PoolRig rig;
  rig.give(rig.take(4_MiB));
  const PoolId graph = rig.allocator.begin_capture(kSide);
  EXPECT_EQ(rig.pool_of(rig.take(4_MiB, kSide)), graph);
  EXPECT_EQ(rig.pool_of(rig.take(4_MiB)), kDefaultPool);
  rig.allocator.end_capture(graph);
  EXPECT_EQ(rig.pool_of(rig.take(4_MiB, kSide)), kDefaultPool);
}

// R7.1: the most recent context that takes the stream.
TEST(PrivatePools, PreferTheInnermostContext) {
  PoolRig rig;
  const PoolId outer = rig.allocator.new_mem_pool();
  const PoolId inner = rig.allocator.new_mem_pool();
  rig.allocator.enter_mem_pool(outer);
  rig.allocator.enter_mem_pool(inner);
  EXPECT_EQ(rig.pool_of(rig.take(4_MiB)), inner);
  rig.allocator.leave_mem_pool(inner);
  EXPECT_EQ(rig.pool_of(rig.take(4_MiB)), outer);
  rig.allocator.leave_mem_pool(outer);
  EXPECT_THROW(rig.allocator.leave_mem_pool(outer), InternalError);
  EXPECT_THROW(rig.allocator.enter_mem_pool(PoolId{99}), InternalError);
}

// R7.2: a deleted MemPool gives back what is unused at once; live blocks stay and return to their pool.
TEST(PrivatePools, GiveBackWhatIsUnusedWhenTheMemPoolDies) {
  PoolRig rig;
  const PoolId pool = rig.allocator.new_mem_pool();
  const BlockId kept = rig.take_in(pool, 30_MiB);
  rig.give(rig.take_in(pool, 50_MiB));
  rig.give(rig.take(40_MiB));
  rig.allocator.delete_mem_pool(pool);
  EXPECT_EQ(rig.reserved(), 70_MiB);  // the default pool's cache is left alone
  rig.give(kept);
  EXPECT_EQ(rig.reserved(), 70_MiB);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 0u);
  EXPECT_TRUE(rig.allocator.state().groups[1].dropped);
}

// R7.2: resetting a graph releases nothing by itself.
TEST(PrivatePools, OfAResetGraphWaitForTheNextRelease) {
  PoolRig rig;
  const PoolId graph = rig.allocator.begin_capture(kSide);
  rig.give(rig.take(30_MiB, kSide));
  rig.allocator.end_capture(graph);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 30_MiB);
  rig.allocator.release_graph(graph);
  EXPECT_EQ(rig.reserved(), 30_MiB);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 0u);
}

// R7.4
TEST(PrivatePools, AreReleasedByEmptyCacheOnlyWhenFreeable) {
  PoolRig rig;
  const PoolId pool = rig.allocator.new_mem_pool();
  rig.give(rig.take_in(pool, 30_MiB));
  rig.allocator.empty_cache(pool);
  EXPECT_EQ(rig.reserved(), 30_MiB);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 0);

  rig.give(rig.take(40_MiB));
  const PoolId graph = rig.allocator.begin_capture(kSide);
  rig.allocator.empty_cache();  // within a capture: neither events nor default pools
  EXPECT_EQ(rig.reserved(), 70_MiB);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 0);
  rig.allocator.end_capture(graph);
}

// A pool that two graphs share lives as long as either.
TEST(PrivatePools, CanBeSharedByGraphs) {
  PoolRig rig;
  const PoolId pool = rig.allocator.begin_capture(kSide);
  rig.give(rig.take(30_MiB, kSide));
  rig.allocator.end_capture(pool);
  EXPECT_EQ(rig.allocator.begin_capture(kSide, pool), pool);
  rig.give(rig.take(30_MiB, kSide));
  rig.allocator.end_capture(pool);
  EXPECT_EQ(rig.reserved(), 30_MiB);
  rig.allocator.release_graph(pool);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 30_MiB);
  rig.allocator.release_graph(pool);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 0u);
}

// R3.1.1: a no-split pool hands blocks out whole, however large.
TEST(PrivatePools, WithoutSplittingGiveWholeBlocks) {
  PoolRig rig;
  const PoolId pool =
      rig.allocator.new_mem_pool({.use_on_oom = false, .no_split = true, .custom_allocator = false});
  const BlockId small = rig.take_in(pool, 100);
  EXPECT_EQ(rig.allocator.size_of(small), 2_MiB);
  rig.give(rig.take_in(pool, 180_MiB));
  const BlockId block = rig.take_in(pool, 1091734);
  EXPECT_EQ(rig.allocator.size_of(block), 180_MiB);
  EXPECT_EQ(rig.requested(), 100u + 1091734u);
  rig.expect_sound();
}

// R7.5: cached blocks of a use_on_oom pool serve default requests before the full release.
TEST(PrivatePools, LendTheirCacheBeforeAnOom) {
  PoolRig rig(100_MiB);
  const PoolId pool =
      rig.allocator.new_mem_pool({.use_on_oom = true, .no_split = false, .custom_allocator = false});
  rig.give(rig.take_in(pool, 60_MiB));
  rig.give(rig.take(30_MiB));
  const BlockId lent = rig.take(40_MiB);
  EXPECT_EQ(rig.pool_of(lent), pool);
  EXPECT_EQ(rig.reserved(), 90_MiB);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
  rig.give(lent);
  rig.expect_sound();

  // Not to requests of other private pools, and not once the MemPool is deleted.
  const PoolId other = rig.allocator.new_mem_pool();
  rig.allocator.enter_mem_pool(other);
  EXPECT_TRUE(rig.fails(40_MiB));
  rig.allocator.leave_mem_pool(other);
}

// R7.5: of several pools the oldest with a fitting block, not the best fit.
TEST(PrivatePools, LendInTheOrderTheyWereMade) {
  PoolRig rig(100_MiB);
  constexpr PoolOptions kLending{.use_on_oom = true, .no_split = false, .custom_allocator = false};
  const PoolId older = rig.allocator.new_mem_pool(kLending);
  const PoolId newer = rig.allocator.new_mem_pool(kLending);
  rig.give(rig.take_in(newer, 40_MiB));
  rig.give(rig.take_in(older, 60_MiB));
  EXPECT_EQ(rig.pool_of(rig.take(40_MiB)), older);
}

// R7.5: pools that do not lend, and pools with nothing that fits, do not end the search.
TEST(PrivatePools, LendAlsoBehindPoolsThatCannot) {
  PoolRig rig(120_MiB);
  constexpr PoolOptions kLending{.use_on_oom = true, .no_split = false, .custom_allocator = false};
  const PoolId silent = rig.allocator.new_mem_pool();
  const PoolId empty = rig.allocator.new_mem_pool(kLending);
  const PoolId lending = rig.allocator.new_mem_pool(kLending);
  rig.give(rig.take_in(silent, 40_MiB));
  rig.give(rig.take_in(empty, 20_MiB));
  rig.give(rig.take_in(lending, 50_MiB));
  EXPECT_EQ(rig.pool_of(rig.take(40_MiB)), lending);
}

// R7.5, R3.1: what is lent is cut as with expandable segments off, so a rest of 1 MiB stays with the block.
TEST(PrivatePools, LendAsIfExpandableSegmentsWereOff) {
  PoolRig rig(100_MiB, "expandable_segments:True");
  const PoolId pool =
      rig.allocator.new_mem_pool({.use_on_oom = true, .no_split = false, .custom_allocator = true});
  rig.give(rig.take_in(pool, 80_MiB));  // plain, as of every custom allocator (R5.1)
  const BlockId lent = rig.take(79_MiB);
  EXPECT_EQ(rig.pool_of(lent), pool);
  EXPECT_EQ(rig.allocator.size_of(lent), 80_MiB);
  EXPECT_EQ(rig.inactive_split_bytes(), 0u);
}

// R7.5, trap: expandable blocks are passed over.
TEST(PrivatePools, DoNotLendExpandableBlocks) {
  PoolRig rig(100_MiB, "expandable_segments:True");
  const PoolId pool =
      rig.allocator.new_mem_pool({.use_on_oom = true, .no_split = false, .custom_allocator = false});
  rig.give(rig.take_in(pool, 80_MiB));
  EXPECT_TRUE(rig.fails(40_MiB));
}

// R7.9: with expandable segments the count can reach 0 while blocks are alive. The pool is dropped, and its
// leftovers are no longer released nor reported.
TEST(PrivatePools, CanBeDroppedTooEarlyWithExpandableSegments) {
  PoolRig rig(80_GiB, "expandable_segments:True");
  const PoolId pool = rig.allocator.new_mem_pool();
  const BlockId wide = rig.take_in(pool, 21_MiB);  // one request, two pages
  const BlockId kept = rig.take_in(pool, 10_MiB);  // in the second page
  rig.give(wide);
  rig.allocator.delete_mem_pool(pool);  // unmaps the first page: 1 − 1 = 0
  EXPECT_EQ(rig.reserved(), 20_MiB);
  EXPECT_TRUE(rig.allocator.state().groups[1].dropped);
  EXPECT_EQ(rig.allocator.private_pools_idle(), 0u);
  rig.give(kept);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 20_MiB);
  rig.expect_sound();
}

// R7.9 c
TEST(PrivatePools, ReportACountBelowZeroAsPyTorchDoes) {
  PoolRig rig(80_GiB, "expandable_segments:True");
  const PoolId pool = rig.allocator.new_mem_pool();
  const BlockId all = rig.take_in(pool, 60_MiB);  // one request, three pages
  rig.give(all);
  const BlockId first = rig.take_in(pool, 25_MiB);
  const BlockId middle = rig.take_in(pool, 5_MiB);
  rig.give(first);
  (void)middle;
  EXPECT_THROW(rig.allocator.delete_mem_pool(pool), AllocatorFault);
}

// F of the OOM message (R4.12).
TEST(PrivatePools, ReportWhatTheyHoldIdle) {
  PoolRig rig(100_MiB);
  const PoolId pool = rig.allocator.new_mem_pool();
  rig.give(rig.take_in(pool, 60_MiB));
  const AllocationResult result = rig.allocator.allocate(50_MiB, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.oom().private_pools_idle, 60_MiB);
  EXPECT_EQ(result.oom().reserved, 60_MiB);
}

// Numbers are never used again, and the order of making survives the reuse of table entries.
TEST(PrivatePools, HaveLastingNumbers) {
  PoolRig rig;
  const PoolId first = rig.allocator.new_mem_pool();
  const PoolId second = rig.allocator.new_mem_pool();
  rig.allocator.delete_mem_pool(first);
  const PoolId third = rig.allocator.new_mem_pool();
  EXPECT_LT(second, third);
  EXPECT_EQ(rig.allocator.state().groups.size(), 3u);
  EXPECT_THROW(rig.allocator.enter_mem_pool(first), InternalError);
}

// Pools are numbered by 16 bits, two of them a private pool and two for the default one.
TEST(PrivatePools, AreAtMost32767AtOnce) {
  PoolRig rig;
  const PoolId first = rig.allocator.new_mem_pool();
  for (int more = 1; more < 32'767; ++more) rig.allocator.new_mem_pool();
  EXPECT_THROW(rig.allocator.new_mem_pool(), InputError);
  rig.allocator.delete_mem_pool(first);
  EXPECT_NO_THROW(rig.allocator.new_mem_pool());
}

}  // namespace
}  // namespace vramlab
