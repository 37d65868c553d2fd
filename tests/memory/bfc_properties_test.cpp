// Random programs on the BFC allocator: its regions, chunks and bins always agree with each other.
#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/memory/others/bfc_allocator.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

// The same programs on every run; RC_PARAMS="seed=…" tries others.
[[maybe_unused]] const int kBfcSeeded = setenv("RC_PARAMS", "seed=20240917", 0);

/// The sums over all chunks that the counters must equal.
struct Sums {
  Bytes pool = 0;
  Bytes in_use = 0;
  Bytes requested = 0;
  std::vector<BfcChunkView> free;
};

// Chunks cover their region without holes, and no two neighbours are free.
void check_region(const BfcRegionView& region, Sums& sums) {
  Address next = region.base;
  bool free_before = false;
  for (const BfcChunkView& chunk : region.chunks) {
    RC_ASSERT(chunk.address == next);
    RC_ASSERT(chunk.size > 0 && chunk.size % kBfcUnit == 0);
    RC_ASSERT(!(free_before && !chunk.in_use));
    free_before = !chunk.in_use;
    next += chunk.size;
    sums.in_use += chunk.in_use ? chunk.size : 0;
    sums.requested += chunk.requested;
    if (!chunk.in_use) sums.free.push_back(chunk);
  }
  RC_ASSERT(next == region.base + region.size);
  sums.pool += region.size;
}

// Bins hold exactly the free chunks, each in its own bin, by size and then by address.
void check_bins(const BfcAllocator& allocator, std::vector<BfcChunkView> free) {
  std::vector<BfcChunkView> binned;
  for (std::size_t i = 0; i < kBfcBins; ++i) {
    std::pair<Bytes, Address> before{0, 0};
    for (const BfcChunkView& chunk : allocator.bin(i)) {
      RC_ASSERT(bfc_bin_of(chunk.size) == i);
      RC_ASSERT(before < std::pair(chunk.size, chunk.address));
      before = {chunk.size, chunk.address};
      binned.push_back(chunk);
    }
  }
  std::sort(binned.begin(), binned.end());
  std::sort(free.begin(), free.end());
  RC_ASSERT(binned == free);
}

void check(const BfcAllocator& allocator, const BfcOptions& options) {
  Sums sums;
  const std::vector<BfcRegionView> regions = allocator.regions();
  for (const BfcRegionView& region : regions) check_region(region, sums);
  check_bins(allocator, sums.free);
  const BfcStats stats = allocator.bfc_stats();
  RC_ASSERT(stats.pool_bytes == sums.pool);
  RC_ASSERT(stats.bytes_in_use == sums.in_use);
  RC_ASSERT(allocator.stats().requested_bytes.all().current == static_cast<std::int64_t>(sums.requested));
  RC_ASSERT(allocator.stats().segment.all().current == static_cast<std::int64_t>(regions.size()));
  RC_ASSERT(sums.pool <= options.limit);
  Bytes largest = 0;
  for (const BfcChunkView& chunk : sums.free) largest = std::max(largest, chunk.size);
  RC_ASSERT(stats.largest_free_chunk == largest);
}

BfcOptions any_bfc_options() {
  return {.limit = *rc::gen::inRange<Bytes>(1'000'000, 400'000'000),
          .allow_growth = *rc::gen::arbitrary<bool>(),
          .garbage_collection = *rc::gen::arbitrary<bool>(),
          .fragmentation_fraction = *rc::gen::element(0.0, 0.001, 0.1)};
}

// What a chunk wastes is less than the request and less than what is worth a cut.
void check_waste(const BfcAllocator& allocator, const BfcOptions& options, Bytes size, Bytes in_use_before) {
  const Bytes chunk = allocator.bfc_stats().bytes_in_use - in_use_before;
  const Bytes rounded = bfc_rounded(size);
  RC_ASSERT(chunk >= rounded && chunk < 2 * rounded);
  const auto worth =
      options.fragmentation_fraction > 0
          ? static_cast<Bytes>(options.fragmentation_fraction * static_cast<double>(options.limit))
          : 128_MiB;
  RC_ASSERT(chunk - rounded < worth);
}

TEST(BfcProperties, RegionsChunksAndBinsAlwaysAgree) {
  EXPECT_TRUE(rc::check([] {
    const BfcOptions options = any_bfc_options();
    SimulatedCard card(*rc::gen::element(100_MiB, 500_MiB), 0);
    SimSegments segments(card);
    BfcAllocator allocator(segments, options);
    std::vector<BlockId> live;
    const int count = *rc::gen::inRange(1, 300);
    for (int i = 0; i < count; ++i) {
      const int action = *rc::gen::inRange(0, 100);
      if (action < 60) {
        const Bytes magnitude = Bytes{1} << *rc::gen::inRange(0, 27);
        const Bytes size = magnitude + *rc::gen::inRange<Bytes>(0, magnitude);
        const Bytes before = allocator.bfc_stats().bytes_in_use;
        const AllocationResult result = allocator.allocate(size, kDefaultStream);
        if (result) {
          live.push_back(result->block);
          check_waste(allocator, options, size, before);
        }
      } else if (action < 98 && !live.empty()) {
        const std::size_t victim = *rc::gen::inRange<std::size_t>(0, live.size());
        allocator.free(std::exchange(live[victim], live.back()));
        live.pop_back();
      } else {
        allocator.empty_cache();
      }
      check(allocator, options);
    }
    for (const BlockId block : live) allocator.free(block);
    allocator.empty_cache();
    check(allocator, options);
    RC_ASSERT(card.taken() == 0);
  }));
}

}  // namespace
}  // namespace vramlab
