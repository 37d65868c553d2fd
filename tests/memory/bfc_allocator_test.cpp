// Vectors derived by hand from the allocator's source; there is no recording of this allocator.
#include "sim/memory/others/bfc_allocator.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

/// A card without a context and one allocator on it.
struct BfcRig {
  explicit BfcRig(const BfcOptions& options, Bytes total = 80_GiB)
      : card(total, 0), segments(card), allocator(segments, options) {}

  BlockId take(Bytes size) {
    const AllocationResult result = allocator.allocate(size, kDefaultStream);
    if (result) return result->block;
    ADD_FAILURE() << "out of memory for " << size << " bytes";
    return kNullBlock;
  }
  bool fails(Bytes size) { return !allocator.allocate(size, kDefaultStream); }
  [[nodiscard]] Bytes in_use() const { return allocator.bfc_stats().bytes_in_use; }
  [[nodiscard]] Bytes pool() const { return allocator.bfc_stats().pool_bytes; }
  [[nodiscard]] std::vector<Bytes> region_sizes() const {
    std::vector<Bytes> sizes;
    for (const BfcRegionView& region : allocator.regions()) sizes.push_back(region.size);
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  }

  SimulatedCard card;
  SimSegments segments;
  BfcAllocator allocator;
};

BfcOptions one_region(Bytes limit) { return {.limit = limit, .allow_growth = false}; }
BfcOptions growing(Bytes limit) { return {.limit = limit, .allow_growth = true}; }

TEST(BfcRules, RoundSizesUpTo256) {
  EXPECT_EQ(bfc_rounded(1), 256u);
  EXPECT_EQ(bfc_rounded(256), 256u);
  EXPECT_EQ(bfc_rounded(257), 512u);
}

TEST(BfcRules, SortChunksIntoTwentyOneBins) {
  EXPECT_EQ(bfc_bin_of(256), 0u);
  EXPECT_EQ(bfc_bin_of(511), 0u);  // bin 0 is [256, 512)
  EXPECT_EQ(bfc_bin_of(512), 1u);
  EXPECT_EQ(bfc_bin_of(1_MiB), 12u);           // 2^20 = 256 · 2^12
  EXPECT_EQ(bfc_bin_of(256_MiB - 1), 19u);     // 2^28 = 256 · 2^20
  EXPECT_EQ(bfc_bin_of(256_MiB), 20u);         // the last bin
  EXPECT_EQ(bfc_bin_of(Bytes{1} << 50), 20u);  // is open-ended
}

// 0.9 as a 32-bit float is 15,099,494 / 2^24. Three quarters of an H100 are 63,763,120,128 = 15,567,168 ·
// 4,096 exactly, and between 2^35 and 2^36 floats lie 4,096 apart. The product, 57,386,806,595.07, is
// 14,010,450.83 · 4,096, hence 14,010,451 · 4,096 = 57,386,807,296, which is a multiple of 256 already.
// With doubles it would be 57,386,808,115.2, rounded up to 57,386,808,320.
TEST(BfcRules, BackOffInSinglePrecision) { EXPECT_EQ(bfc_backed_off(63'763'120'128), 57'386'807'296u); }

// 2,304 = 9 · 256; nine tenths of it are 2,073.6, and 9 · 256 is the next multiple of 256 again.
TEST(BfcRules, BackOffStopsAt2304Bytes) {
  EXPECT_EQ(bfc_backed_off(2'560), 2'304u);
  EXPECT_EQ(bfc_backed_off(2'304), 2'304u);
}

TEST(BfcAllocator, CountsChunksNotRequests) {
  BfcRig rig(one_region(1_GiB));
  rig.take(1000);
  rig.take(1);
  EXPECT_EQ(rig.in_use(), 1'024u + 256u);
  EXPECT_EQ(rig.allocator.stats().requested_bytes.all().current, 1001);
  EXPECT_EQ(rig.allocator.stats().allocated_bytes.all().current, 1280);
  EXPECT_EQ(rig.allocator.stats().reserved_bytes.all().current, 1'073'741'824);
  EXPECT_EQ(rig.allocator.stats().segment.all().current, 1);
  EXPECT_EQ(rig.allocator.bfc_stats(), (BfcStats{.num_allocs = 2,
                                                 .bytes_in_use = 1'280,
                                                 .peak_bytes_in_use = 1'280,
                                                 .largest_alloc_size = 1'024,
                                                 .bytes_limit = 1_GiB,
                                                 .pool_bytes = 1_GiB,
                                                 .peak_pool_bytes = 1_GiB,
                                                 .largest_free_chunk = 1_GiB - 1'280}));
}

TEST(BfcAllocator, GivesNothingForNothing) {
  BfcRig rig(one_region(1_GiB));
  EXPECT_EQ(rig.allocator.allocate(0, kDefaultStream)->address, 0u);
  EXPECT_EQ(rig.pool(), 0u);
}

TEST(BfcAllocator, TakesTheWholeLimitAtOnceUnlessItGrows) {
  BfcRig rig(one_region(3_GiB));
  EXPECT_EQ(rig.pool(), 0u);  // not before the first request
  rig.take(1);
  EXPECT_EQ(rig.region_sizes(), std::vector<Bytes>{3_GiB});
  EXPECT_EQ(rig.card.taken(), 3_GiB);
}

TEST(BfcAllocator, TakesThreeQuartersOfTheDeviceForJax) {
  const BfcOptions options = jax_options(85'017'493'504);  // the H100's total
  EXPECT_EQ(options.limit, 63'763'120'128u);
  EXPECT_FALSE(options.allow_growth);
  EXPECT_EQ(jax_options(7).limit, 5u);  // ⌊5.25⌋
}

// The first region is 2 MiB and needed no doubling, so the next is 4 MiB, and so on.
TEST(BfcAllocator, DoublesItsRegions) {
  BfcRig rig(growing(1_GiB));
  rig.take(2_MiB);
  EXPECT_EQ(rig.region_sizes(), (std::vector<Bytes>{2_MiB}));
  rig.take(2_MiB);  // 4 ≥ 2 · 2: cut, 2 MiB remain
  EXPECT_EQ(rig.region_sizes(), (std::vector<Bytes>{2_MiB, 4_MiB}));
  rig.take(2_MiB);  // in the rest
  rig.take(2_MiB);
  EXPECT_EQ(rig.region_sizes(), (std::vector<Bytes>{2_MiB, 4_MiB, 8_MiB}));
}

// 5 MiB: 2 → 4 → 8 MiB, doubled for the request, so that the following region is 8 MiB again; that one needed
// no doubling, so the third is 16 MiB. 8 MiB < 2 · 5 MiB and 3 MiB < 128 MiB: no cut, each takes all 8 MiB.
TEST(BfcAllocator, DoublesOnlyOnceForOneExtension) {
  BfcRig rig(growing(1_GiB));
  rig.take(5_MiB);
  rig.take(5_MiB);
  EXPECT_EQ(rig.region_sizes(), (std::vector<Bytes>{8_MiB, 8_MiB}));
  EXPECT_EQ(rig.in_use(), 16_MiB);
  rig.take(5_MiB);
  EXPECT_EQ(rig.region_sizes(), (std::vector<Bytes>{8_MiB, 8_MiB, 16_MiB}));
}

// Regions 2 + 4 MiB; the next would be 8, but 10 − 6 = 4 MiB are left of the limit.
TEST(BfcAllocator, CutsTheLastRegionToTheLimit) {
  BfcRig rig(growing(10_MiB));
  rig.take(2_MiB);
  rig.take(4_MiB);
  rig.take(3_MiB);
  EXPECT_EQ(rig.region_sizes(), (std::vector<Bytes>{2_MiB, 4_MiB, 4_MiB}));
  EXPECT_TRUE(rig.fails(256));
  EXPECT_EQ(rig.allocator.stats().num_ooms, 1);
}

// 100 MiB = 104,857,600. The device has 64 MiB = 67,108,864. In floats, 8 apart from 2^26 on and 4 below:
//   104,857,600 → 94,371,837.5 → 94,371,840 = 368,640 · 256
//    94,371,840 → 84,934,653.7 → 84,934,656 = 331,776 · 256
//    84,934,656 → 76,441,188.4 → 76,441,192 → 298,599 · 256 = 76,441,344
//    76,441,344 → 68,797,207.8 → 68,797,208 → 268,740 · 256 = 68,797,440
//    68,797,440 → 61,917,694.4 → 61,917,696 = 241,866 · 256, which the device has (30 pages of 2 MiB)
TEST(BfcAllocator, BacksOffUntilTheDeviceAgrees) {
  BfcRig rig(one_region(100_MiB), 64_MiB);
  rig.take(1_MiB);
  EXPECT_EQ(rig.pool(), 61'917'696u);
  EXPECT_EQ(rig.card.taken(), 60_MiB);

  BfcRig exact(one_region(100_MiB), 64_MiB);
  exact.take(61'917'696);
  EXPECT_EQ(exact.in_use(), 61'917'696u);
}

// The same, but 61,917,696 is one unit less than the 61,917,952 asked for.
TEST(BfcAllocator, BacksOffNoFurtherThanTheRequest) {
  BfcRig rig(one_region(100_MiB), 64_MiB);
  EXPECT_TRUE(rig.fails(61'917'952));
  EXPECT_EQ(rig.pool(), 0u);
  EXPECT_EQ(rig.card.taken(), 0u);
}

TEST(BfcAllocator, GivesUpOnADeviceThatHasNothing) {
  BfcRig rig(growing(100_MiB), 1_MiB);
  EXPECT_TRUE(rig.fails(256));
}

TEST(BfcAllocator, CutsAChunkThatIsTwiceTheRequest) {
  BfcRig rig(one_region(2_MiB));
  rig.take(1_MiB);  // 2 MiB ≥ 2 · 1 MiB
  EXPECT_EQ(rig.in_use(), 1_MiB);

  BfcRig other(one_region(2_MiB));
  other.take(1_MiB + 1);  // 2 MiB < 2 · (1 MiB + 256)
  EXPECT_EQ(other.in_use(), 2_MiB);
}

TEST(BfcAllocator, CutsAChunkOfWhich128MiBRemain) {
  BfcRig rig(one_region(1_GiB));
  rig.take(896_MiB);  // 1,024 − 896 = 128
  EXPECT_EQ(rig.in_use(), 896_MiB);

  BfcRig other(one_region(1_GiB));
  other.take(896_MiB + 256);  // 256 bytes short of 128 MiB
  EXPECT_EQ(other.in_use(), 1_GiB);
}

// A sixteenth of 1 GiB is 64 MiB.
TEST(BfcAllocator, CutsByTheFragmentationFraction) {
  BfcOptions options = one_region(1_GiB);
  options.fragmentation_fraction = 1.0 / 16;
  BfcRig rig(options);
  rig.take(960_MiB);
  EXPECT_EQ(rig.in_use(), 960_MiB);

  BfcRig other(options);
  other.take(960_MiB + 256);
  EXPECT_EQ(other.in_use(), 1_GiB);
}

// Three holes; the smallest that fits is taken, the lowest of equals.
TEST(BfcAllocator, TakesTheBestFit) {
  BfcRig rig(one_region(1_GiB));
  std::vector<BlockId> blocks;
  std::vector<Address> addresses;
  for (const Bytes size : {4_KiB, 1_KiB, 3_KiB, 1_KiB, 3_KiB, 1_KiB}) {
    const AllocationResult result = rig.allocator.allocate(size, kDefaultStream);
    blocks.push_back(result->block);
    addresses.push_back(result->address);
  }
  for (const std::size_t hole : {4u, 0u, 2u}) rig.allocator.free(blocks[hole]);
  EXPECT_EQ(rig.allocator.bin(bfc_bin_of(3_KiB)).size(), 2u);
  EXPECT_EQ(rig.allocator.allocate(2'304, kDefaultStream)->address, addresses[2]);  // all 3 KiB: no cut
  EXPECT_EQ(rig.allocator.allocate(2'304, kDefaultStream)->address, addresses[4]);
  EXPECT_EQ(rig.allocator.allocate(2'304, kDefaultStream)->address, addresses[0]);
}

TEST(BfcAllocator, UsesAHoleFromAnyStream) {
  BfcRig rig(one_region(1_GiB));
  const AllocationResult first = rig.allocator.allocate(1_MiB, 1);
  rig.allocator.free(first->block);
  EXPECT_EQ(rig.allocator.allocate(1_MiB, 2)->address, first->address);
}

TEST(BfcAllocator, MergesWithBothNeighbours) {
  BfcRig rig(one_region(16_MiB));
  const BlockId a = rig.take(1_MiB);
  const BlockId b = rig.take(1_MiB);
  const BlockId c = rig.take(1_MiB);
  rig.allocator.free(a);
  rig.allocator.free(c);
  EXPECT_EQ(rig.allocator.regions()[0].chunks.size(), 3u);  // a hole, b, and c with the rest
  rig.allocator.free(b);
  ASSERT_EQ(rig.allocator.regions()[0].chunks.size(), 1u);
  EXPECT_EQ(rig.allocator.regions()[0].chunks[0].size, 16_MiB);
}

// Free are the first MiB and the last 14.
TEST(BfcAllocator, SaysHowFragmentedItIs) {
  BfcRig rig(one_region(16_MiB));
  EXPECT_EQ(rig.allocator.fragmentation(), 0.0);
  const BlockId a = rig.take(1_MiB);
  rig.take(1_MiB);
  EXPECT_EQ(rig.allocator.fragmentation(), 0.0);
  rig.allocator.free(a);
  EXPECT_EQ(rig.allocator.fragmentation(), 1.0 - 14.0 / 15.0);
}

// Regions 2, 4 and 8 MiB under 16 MiB, the first two of them free: 2 MiB were never taken, 2 + 4 MiB can come
// back, so 8 MiB fit only after a collection.
TEST(BfcAllocator, CollectsFreeRegionsOnlyIfToldTo) {
  for (const bool collects : {false, true}) {
    BfcOptions options = growing(16_MiB);
    options.garbage_collection = collects;
    BfcRig rig(options);
    const BlockId a = rig.take(2_MiB);
    const BlockId b = rig.take(4_MiB);
    rig.take(8_MiB);
    rig.allocator.free(a);
    rig.allocator.free(b);
    EXPECT_EQ(rig.pool(), 14_MiB);
    EXPECT_EQ(rig.fails(8_MiB), !collects);
    EXPECT_EQ(rig.pool(), collects ? 16_MiB : 14_MiB);
    EXPECT_EQ(rig.allocator.stats().num_device_free, collects ? 2 : 0);
  }
}

// 2 + 2 + 4 = 8 MiB can be had: for one byte more nothing is released.
TEST(BfcAllocator, CollectsNothingThatWouldNotSuffice) {
  BfcOptions options = growing(16_MiB);
  options.garbage_collection = true;
  BfcRig rig(options);
  const BlockId a = rig.take(2_MiB);
  const BlockId b = rig.take(4_MiB);
  rig.take(8_MiB);
  rig.allocator.free(a);
  rig.allocator.free(b);
  EXPECT_TRUE(rig.fails(8_MiB + 1));
  EXPECT_EQ(rig.pool(), 14_MiB);
}

TEST(BfcAllocator, DescribesAFailure) {
  BfcRig rig(one_region(16_MiB), 1_GiB);
  rig.take(5_MiB);  // 16 ≥ 10: cut
  const AllocationResult result = rig.allocator.allocate(12_MiB - 1, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.oom().requested, 12_MiB - 1);
  EXPECT_EQ(result.oom().rounded, 12_MiB);
  EXPECT_EQ(result.oom().allocated, 5_MiB);
  EXPECT_EQ(result.oom().reserved, 16_MiB);
  EXPECT_EQ(result.oom().largest_free_block, 11_MiB);
  EXPECT_EQ(result.oom().limit, 16_MiB);
  EXPECT_EQ(result.oom().device_free, 1_GiB - 16_MiB);
}

}  // namespace
}  // namespace vramlab
