#include <gtest/gtest.h>

#include "sim/memory/oom_report.hpp"
#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

// What PyTorch does over cudaMallocAsync.
struct AsyncRig {
  explicit AsyncRig(Bytes total = 10_GiB, std::optional<Bytes> limit = {})
      : card(total, 0), segments(card), allocator(segments, limit) {}
  [[nodiscard]] std::int64_t allocated() const { return allocator.stats().allocated_bytes.all().current; }
  [[nodiscard]] Bytes reserved() const {
    return static_cast<Bytes>(allocator.stats().reserved_bytes.all().current);
  }

  SimulatedCard card;
  SimSegments segments;
  AsyncAllocator allocator;
};

TEST(AsyncAllocator, CountsWhatWasAskedForUnrounded) {
  AsyncRig rig;
  rig.allocator.allocate(19'282'120, 0);
  rig.allocator.allocate(8'374, 5);
  EXPECT_EQ(rig.allocated(), 19'290'494);  // async_1, operation 2
  EXPECT_EQ(rig.reserved(), 32_MiB);
  EXPECT_EQ(rig.allocator.stats().active_bytes.all().current, 19'290'494);
  EXPECT_EQ(rig.allocator.stats().allocation.all().current, 0);
}

TEST(AsyncAllocator, ReservesAChunkForEveryPieceInUse) {
  AsyncRig rig;
  const auto a = rig.allocator.allocate(40_MiB, 0);
  const auto b = rig.allocator.allocate(20_MiB, 0);
  const auto c = rig.allocator.allocate(1_MiB, 0);
  EXPECT_EQ(rig.reserved(), 64_MiB);
  EXPECT_EQ(rig.card.taken(), 64_MiB);
  rig.allocator.free(a->block);
  rig.allocator.free(b->block);
  EXPECT_EQ(rig.reserved(), 64_MiB);  // a free changes nothing
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 32_MiB);  // the piece that c lies in
  EXPECT_EQ(rig.card.taken(), 32_MiB);
  rig.allocator.free(c->block);
}

TEST(AsyncAllocator, StopsAtTheLimitWithoutCounting) {
  AsyncRig rig(10_GiB, 100_MiB);
  ASSERT_TRUE(rig.allocator.allocate(60_MiB, 0));
  const AllocationResult result = rig.allocator.allocate(40_MiB + 1, 0);
  ASSERT_FALSE(result);
  EXPECT_EQ(rig.allocator.stats().num_ooms, 0);
  EXPECT_EQ(rig.allocator.stats().num_alloc_retries, 0);
  EXPECT_TRUE(rig.allocator.allocate(40_MiB, 0));
  EXPECT_EQ(async_oom_message(result.oom()),
            "Allocation on device 0 would exceed allowed memory. (out of memory)\n"
            "Currently allocated     : 60.00 MiB\n"
            "Requested               : 40.00 MiB\n"
            "Device limit            : 10.00 GiB\n"
            "Free (according to CUDA): 9.94 GiB\n"
            "PyTorch limit (set by user-supplied memory fraction)\n"
            "                        : 100.00 MiB");
}

TEST(AsyncAllocator, LeavesTheCardAloneWhenItFails) {
  AsyncRig rig(100_MiB);
  ASSERT_TRUE(rig.allocator.allocate(20_MiB, 0));
  EXPECT_FALSE(rig.allocator.allocate(90_MiB, 0));
  EXPECT_EQ(rig.card.taken(), 32_MiB);
  EXPECT_TRUE(rig.allocator.allocate(70_MiB, 0));
}

// Physical chunks move: a piece that empties gives its chunk to the next one that needs it.
TEST(AsyncAllocator, MovesAChunkToAnotherPiece) {
  AsyncRig rig;
  constexpr Address kPool = 0x302000000;
  rig.allocator.supply_address(kPool);
  const auto a = rig.allocator.allocate(32_MiB, 0);
  EXPECT_EQ(a->address, kPool);
  rig.allocator.free(a->block);
  rig.allocator.supply_address(kPool + 10 * 32_MiB);
  EXPECT_EQ(rig.allocator.allocate(1, 0)->address, kPool + 10 * 32_MiB);
  EXPECT_EQ(rig.reserved(), 32_MiB);
}

TEST(AsyncAllocator, NeedsTwoChunksForABlockAcrossABoundary) {
  AsyncRig rig;
  rig.allocator.supply_address(0x302000000 + 32_MiB - 512);
  rig.allocator.allocate(1'024, 0);
  EXPECT_EQ(rig.reserved(), 64_MiB);
}

TEST(AsyncAllocator, ChoosesItselfWhereASuppliedAddressIsTaken) {
  AsyncRig rig;
  const Address first = rig.allocator.allocate(1'000, 0)->address;
  rig.allocator.supply_address(first + 512);
  EXPECT_EQ(rig.allocator.allocate(512, 0)->address, first + 1'024);
}

// Only current and peak: the totals of this backend's counters stay 0.
TEST(AsyncAllocator, KeepsNoTotals) {
  AsyncRig rig;
  rig.allocator.free(rig.allocator.allocate(1'000, 0)->block);
  const Stat stat = rig.allocator.stats().allocated_bytes.all();
  EXPECT_EQ(stat, (Stat{.current = 0, .peak = 1'000, .allocated = 0, .freed = 0}));
  rig.allocator.reset_peak_stats();
  EXPECT_EQ(rig.allocator.stats().allocated_bytes.all(), Stat{});
  EXPECT_EQ(rig.allocator.stats().reserved_bytes.all().peak, 33'554'432);
}

}  // namespace
}  // namespace vramlab
