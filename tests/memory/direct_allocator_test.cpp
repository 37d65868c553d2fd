#include <vector>

#include <gtest/gtest.h>

#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

struct DirectRig {
  explicit DirectRig(Bytes total = 80_GiB) : card(total, 0), segments(card), allocator(segments) {}

  [[nodiscard]] Bytes reserved() const {
    return static_cast<Bytes>(allocator.stats().reserved_bytes.all().current);
  }

  SimulatedCard card;
  SimSegments segments;
  DirectAllocator allocator;
};

// R7.7, R10.1
TEST(DirectAllocator, TakesPagesAndReturnsThemAtOnce) {
  DirectRig rig;
  const AllocationResult block = rig.allocator.allocate(5'000'000, kDefaultStream);
  EXPECT_EQ(rig.allocator.stats().allocated_bytes.all().current, 5'000'000);
  EXPECT_EQ(rig.allocator.stats().requested_bytes.all().current, 5'000'000);
  EXPECT_EQ(rig.reserved(), 6_MiB);
  EXPECT_EQ(rig.card.taken(), 6_MiB);
  rig.allocator.free(block->block);
  EXPECT_EQ(rig.reserved(), 0u);
  EXPECT_EQ(rig.card.taken(), 0u);
  EXPECT_EQ(rig.allocator.stats().num_device_alloc, 1);
  EXPECT_EQ(rig.allocator.stats().num_device_free, 1);
}

// R10.1: measured, as are the 300 KiB between the addresses.
TEST(DirectAllocator, PutsSixRequestsOf300KiBInAPage) {
  DirectRig rig;
  std::vector<Allocation> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(*rig.allocator.allocate(300_KiB, kDefaultStream));
  EXPECT_EQ(rig.card.taken(), 2_MiB);
  EXPECT_EQ(blocks[1].address - blocks[0].address, 300_KiB);
  EXPECT_EQ(blocks[5].address - blocks[0].address, 1500_KiB);
  blocks.push_back(*rig.allocator.allocate(300_KiB, kDefaultStream));
  EXPECT_EQ(rig.card.taken(), 4_MiB);
  EXPECT_EQ(rig.reserved(), 4_MiB);
}

// R10.1: "a single 512-byte, 1 MiB or 2 MiB request lowers the free figure by 2 MiB".
TEST(DirectAllocator, TakesAtLeastOnePage) {
  for (const Bytes size : {Bytes{512}, 1_MiB, 2_MiB}) {
    DirectRig rig;
    rig.allocator.allocate(size, kDefaultStream);
    EXPECT_EQ(rig.card.taken(), 2_MiB) << size;
  }
}

TEST(DirectAllocator, KeepsASharedPageUntilItsLastBlockGoes) {
  DirectRig rig;
  const auto a = rig.allocator.allocate(100, kDefaultStream);
  const auto b = rig.allocator.allocate(100, kDefaultStream);
  rig.allocator.free(a->block);
  EXPECT_EQ(rig.card.taken(), 2_MiB);
  EXPECT_EQ(rig.allocator.allocate(100, kDefaultStream)->address, a->address);
  rig.allocator.free(b->block);
  EXPECT_EQ(rig.card.taken(), 2_MiB);
}

TEST(DirectAllocator, FailsWhereTheDeviceEnds) {
  DirectRig rig(10_MiB);
  ASSERT_TRUE(rig.allocator.allocate(7_MiB, kDefaultStream));  // 4 pages of 5
  const AllocationResult result = rig.allocator.allocate(3_MiB, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.oom().requested, 3_MiB);
  EXPECT_EQ(result.oom().device_free, 2_MiB);
  EXPECT_EQ(result.oom().allocated, 7_MiB);
  EXPECT_EQ(result.oom().reserved, 8_MiB);
  EXPECT_EQ(rig.allocator.stats().num_ooms, 0);
  EXPECT_TRUE(rig.allocator.allocate(2_MiB, kDefaultStream));
}

}  // namespace
}  // namespace vramlab
