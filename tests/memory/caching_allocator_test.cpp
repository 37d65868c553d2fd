// Sequences of requests worked out by hand from the rules, and the rules around them.
#include "sim/memory/caching/caching_allocator.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using Action = AllocatorEvent::Action;

// V1: allocated, requested, reserved, inactive splits (number, bytes), segments.
TEST(CachingAllocator, CountsSmallBlocksAndInactiveSplits) {
  Rig rig;
  const auto expect = [&](Bytes allocated, Bytes requested, Bytes reserved, int splits, Bytes split_bytes,
                          int segments) {
    EXPECT_EQ(rig.allocated(), allocated);
    EXPECT_EQ(rig.requested(), requested);
    EXPECT_EQ(rig.reserved(), reserved);
    EXPECT_EQ(rig.inactive_splits(), splits);
    EXPECT_EQ(rig.inactive_split_bytes(), split_bytes);
    EXPECT_EQ(rig.segment_count(), segments);
    rig.expect_sound();
  };
  const BlockId a = rig.take(1000);
  expect(1024, 1000, 2097152, 1, 2096128, 1);
  const BlockId b = rig.take(1048576);
  expect(1049600, 1049576, 2097152, 1, 1047552, 1);
  const BlockId c = rig.take(1048576);
  expect(2098176, 2098152, 4194304, 2, 2096128, 2);
  rig.give(a);
  expect(2097152, 2097152, 4194304, 3, 2097152, 2);
  rig.give(b);
  expect(1048576, 1048576, 4194304, 1, 1048576, 2);
  const BlockId d = rig.take(600);
  expect(1049600, 1049176, 4194304, 1, 1047552, 2);
  EXPECT_EQ(rig.allocator.address_of(d), rig.allocator.address_of(c) + 1048576);  // not the 2 MiB block
  rig.allocator.empty_cache();
  expect(1049600, 1049176, 2097152, 1, 1047552, 1);

  EXPECT_EQ(rig.stats().num_device_alloc, 2);
  EXPECT_EQ(rig.stats().num_device_free, 1);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 1);
  EXPECT_EQ(rig.stats().inactive_split.all(), (Stat{.current = 1, .peak = 3, .allocated = 3, .freed = 2}));
}

// V2
TEST(CachingAllocator, KeepsTailsOfUpToOneMiBUnsplitInTheLargePool) {
  Rig rig;
  const BlockId five = rig.take(5_MiB);
  EXPECT_EQ(rig.reserved(), 20_MiB);
  EXPECT_EQ(rig.inactive_split_bytes(), 15_MiB);
  rig.take(14_MiB + 512_KiB);
  EXPECT_EQ(rig.allocated(), 20_MiB);
  EXPECT_EQ(rig.requested(), 19_MiB + 512_KiB);
  EXPECT_EQ(rig.inactive_splits(), 0);
  rig.take(1_MiB + 512_KiB);
  EXPECT_EQ(rig.reserved(), 40_MiB);
  rig.give(five);
  EXPECT_EQ(rig.inactive_splits(), 2);
  EXPECT_EQ(rig.inactive_split_bytes(), 23_MiB + 512_KiB);
  EXPECT_EQ(rig.allocator.address_of(rig.take(5_MiB)), rig.allocator.segments()[1].base);  // the exact fit
  EXPECT_EQ(rig.inactive_splits(), 1);
  EXPECT_EQ(rig.inactive_split_bytes(), 18_MiB + 512_KiB);
  rig.expect_sound();
}

// R3.1: the threshold is strict.
TEST(CachingAllocator, SplitsOnlyRemaindersAboveOneMiB) {
  Rig rig;
  rig.take(19_MiB);
  EXPECT_EQ(rig.allocated(), 20_MiB);
  rig.take(10_MiB + 512);  // 12 MiB segment, remainder 2 MiB − 512
  EXPECT_EQ(rig.allocated(), 30_MiB + 512);
  rig.take(11_MiB + 256_KiB);  // 12 MiB segment, remainder 0.75 MiB
  EXPECT_EQ(rig.allocated(), 42_MiB + 512);
}

// V3, R0.3
TEST(CachingAllocator, NeverGivesABlockToAnotherStream) {
  Rig rig;
  rig.give(rig.take(4_MiB, 1));
  rig.take(4_MiB, 2);
  EXPECT_EQ(rig.segment_count(), 2);
  EXPECT_EQ(rig.reserved(), 40_MiB);
}

// V5, R4.9.2: a request that lands exactly on the limit is served.
TEST(CachingAllocator, ServesUpToTheLimitAndNotBeyond) {
  AllocatorOptions options;
  options.settings.per_process_memory_fraction = 0.5;
  Rig rig(80_GiB, options);
  ASSERT_EQ(rig.allocator.limit(), Bytes{42949672960});
  rig.take(42949672960 - 20_MiB);
  rig.take(1_MiB + 512_KiB);  // a 20 MiB segment
  EXPECT_EQ(rig.reserved(), 42949672960);
  rig.take(18_MiB);
  EXPECT_TRUE(rig.fails(1_MiB + 512_KiB));
}

// R9.1: the product is truncated; this fraction of this card falls one byte short of 4 GiB.
TEST(CachingAllocator, TruncatesTheLimit) {
  AllocatorOptions options;
  options.settings.per_process_memory_fraction = 0.05051862997816944;
  Rig rig(85017493504, options);
  ASSERT_TRUE(rig.allocator.limit());
  EXPECT_EQ(*rig.allocator.limit(), static_cast<Bytes>(0.05051862997816944 * 85017493504.0));
  EXPECT_EQ(Rig(85017493504, "per_process_memory_fraction:1.0").allocator.limit(), std::nullopt);
  EXPECT_EQ(Rig(85017493504, "per_process_memory_fraction:0.0").allocator.limit(), Bytes{0});
}

// V6, R4.10
TEST(CachingAllocator, ReportsAnOomWithItsFigures) {
  Rig rig(100_MiB);
  History history;
  rig.allocator.set_listener(&history);
  const AllocationResult result = rig.allocator.allocate(200_MiB, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.oom().requested, 200_MiB);
  EXPECT_EQ(result.oom().segment, 200_MiB);
  EXPECT_EQ(result.oom().device_total, 100_MiB);
  EXPECT_EQ(result.oom().device_free, 100_MiB);
  EXPECT_EQ(result.oom().limit, std::nullopt);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 1);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
  EXPECT_EQ(rig.stats().num_ooms, 1);
  EXPECT_EQ(rig.stats().num_device_alloc, 0);
  EXPECT_THAT(history.events, ElementsAre(AllocatorEvent{Action::oom, 100_MiB, 209715200, 0}));
}

// V6: no retry and no release inside use_mem_pool.
TEST(CachingAllocator, DoesNotRetryInsideAPrivatePool) {
  Rig rig(100_MiB);
  const PoolId pool = rig.allocator.new_mem_pool();
  rig.allocator.enter_mem_pool(pool);
  EXPECT_TRUE(rig.fails(200_MiB));
  rig.allocator.leave_mem_pool(pool);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
  EXPECT_EQ(rig.stats().num_sync_all_streams, 0);
  EXPECT_EQ(rig.stats().num_ooms, 1);
}

// The figures of an OOM: A as "tried", the largest free block of this pool and stream.
TEST(CachingAllocator, NamesTheLargestFreeBlockOfTheRequestsPoolAndStream) {
  Rig rig(50_MiB);
  const BlockId a = rig.take(12_MiB);
  const BlockId b = rig.take(6_MiB);
  rig.take(16_MiB, 9);
  rig.give(a);
  const AllocationResult result = rig.allocator.allocate(15_MiB, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.oom().segment, 16_MiB);
  EXPECT_EQ(result.oom().largest_free_block, 14_MiB);  // behind b; the 12 MiB were released on the way
  EXPECT_EQ(result.oom().allocated, 22_MiB);
  EXPECT_EQ(result.oom().reserved, 36_MiB);
  EXPECT_EQ(result.oom().device_free, 14_MiB);
  rig.give(b);
}

// R4.8, R4.9: a retry that helps.
TEST(CachingAllocator, ReleasesWhatIsCachedBeforeItGivesUp) {
  Rig rig(100_MiB);
  rig.give_all({rig.take(30_MiB), rig.take(30_MiB), rig.take(30_MiB)});
  rig.take(80_MiB);
  EXPECT_EQ(rig.reserved(), 80_MiB);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
  EXPECT_EQ(rig.stats().num_device_free, 3);
}

// V10, R2.2
TEST(CachingAllocator, TakesTheLowerAddressOfTwoEqualBlocks) {
  Rig rig;
  const BlockId a = rig.take(20_MiB);
  const BlockId b = rig.take(20_MiB);
  const Address low = std::min(rig.allocator.address_of(a), rig.allocator.address_of(b));
  rig.give_all({a, b});
  EXPECT_EQ(rig.allocator.address_of(rig.take(20_MiB)), low);
}

// R1.1
TEST(CachingAllocator, AnswersNothingWithANullPointer) {
  Rig rig;
  const AllocationResult nothing = rig.allocator.allocate(0, kDefaultStream);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->address, 0u);
  rig.allocator.record_stream(nothing->block, 3);
  rig.allocator.free(nothing->block);
  EXPECT_EQ(rig.stats(), MemoryStats{});
}

// R1.1, K1-24: absurd sizes move no counter; merely enormous ones are an ordinary OOM.
TEST(CachingAllocator, RefusesAbsurdSizesWithoutCounting) {
  Rig rig;
  EXPECT_TRUE(rig.fails(Bytes{1} << 60));
  EXPECT_TRUE(rig.fails(~Bytes{0}));
  EXPECT_EQ(rig.stats(), MemoryStats{});
  EXPECT_TRUE(rig.fails(800'000'000'000'000'000));
  EXPECT_EQ(rig.stats().num_ooms, 1);
}

TEST(CachingAllocator, RejectsBlocksThatAreNotLive) {
  Rig rig;
  const BlockId block = rig.take(1000);
  rig.give(block);
  EXPECT_THROW(rig.give(block), InternalError);
  EXPECT_THROW(rig.give(BlockId{1234}), InternalError);
}

// R4.11: the history of one hard allocation.
TEST(CachingAllocator, TellsWhatItDoesInOrder) {
  Rig rig(100_MiB);
  History history;
  const BlockId a = rig.take(60_MiB);
  const BlockId b = rig.take(1000);
  rig.give(a);
  rig.allocator.record_stream(b, 5);
  rig.give(b);
  rig.allocator.set_listener(&history);
  rig.take(70_MiB);
  EXPECT_THAT(history.actions(), ElementsAre(Action::free_completed, Action::segment_free,
                                             Action::segment_free, Action::segment_alloc, Action::alloc));
}

// R8.5
TEST(CachingAllocator, ResetsPeaksToTheCurrentValues) {
  Rig rig;
  const BlockId a = rig.take(30_MiB);
  const BlockId b = rig.take(50_MiB);
  rig.give(a);
  rig.allocator.reset_peak_stats();
  EXPECT_EQ(rig.stats().allocated_bytes.all().peak, static_cast<std::int64_t>(50_MiB));
  EXPECT_EQ(rig.stats().reserved_bytes.all().peak, static_cast<std::int64_t>(80_MiB));
  EXPECT_EQ(rig.stats().allocation.all().peak, 1);
  rig.give(b);
}

// R8.5
TEST(CachingAllocator, ResetsAccumulatedSumsAndCounts) {
  Rig rig(100_MiB);
  rig.give(rig.take(30_MiB));
  EXPECT_TRUE(rig.fails(200_MiB));
  const BlockId kept = rig.take(10_MiB);
  rig.allocator.reset_accumulated_stats();
  const MemoryStats& stats = rig.stats();
  EXPECT_EQ(stats.allocated_bytes.all().allocated, 0);
  EXPECT_EQ(stats.allocated_bytes.all().freed, 0);
  EXPECT_EQ(stats.allocated_bytes.all().current, static_cast<std::int64_t>(10_MiB));
  EXPECT_EQ(stats.allocated_bytes.all().peak, static_cast<std::int64_t>(30_MiB));
  EXPECT_EQ(stats.num_alloc_retries + stats.num_ooms + stats.num_sync_all_streams + stats.num_device_alloc +
                stats.num_device_free,
            0);
  rig.give(kept);
}

// R8.6
TEST(MemoryStats, HasThe122KeysOfPyTorch) {
  const std::vector<std::string>& names = stat_names();
  EXPECT_EQ(names.size(), 122u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_THAT(names, testing::IsSupersetOf({"active.all.allocated", "allocated_bytes.all.current",
                                            "max_split_size", "num_sync_all_streams",
                                            "oversize_segments.freed", "requested_bytes.small_pool.peak"}));
  MemoryStats stats;
  stats.num_ooms = 7;
  const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), "num_ooms") - names.begin());
  EXPECT_EQ(stat_values(stats).at(at), 7);
}

// R8.3, R8.4: the oversize counters follow the setting of the moment, the reported setting does not.
TEST(CachingAllocator, LetsOversizeCountersDriftWhenTheSettingChanges) {
  Rig rig;
  const BlockId block = rig.take(100_MiB);
  EXPECT_EQ(rig.stats().oversize_allocations.current(), 0);
  rig.allocator.set_settings("max_split_size_mb:50");
  rig.give(block);
  EXPECT_EQ(rig.stats().oversize_allocations.current(), -1);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.stats().oversize_segments.current(), -1);
  EXPECT_EQ(rig.stats().max_split_size, -1);
  EXPECT_EQ(Rig(1_GiB, "max_split_size_mb:50").stats().max_split_size, static_cast<std::int64_t>(50_MiB));
}

TEST(CachingAllocator, IsTheNativeBackendOnly) {
  EXPECT_THROW(Rig(1_GiB, "backend:cudaMallocAsync"), InputError);
  Rig rig;
  EXPECT_THROW(rig.allocator.set_settings("backend:cudaMallocAsync"), InputError);
}

}  // namespace
}  // namespace vramlab
