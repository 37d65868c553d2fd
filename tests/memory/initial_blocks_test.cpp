// An allocator that starts from the memory of another behaves like it.
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/segments/recorded_segments.hpp"

namespace vramlab {
namespace {

using testing::IsEmpty;

std::vector<std::uint64_t> description(const CachingAllocator& allocator) {
  std::vector<std::uint64_t> state;
  allocator.append_canonical_state(state);
  return state;
}

// Blocks of both pools and two streams, some of them freed; the counters that are known are equal too.
void fill(CachingAllocator& allocator, std::uint32_t seed) {
  std::mt19937 random{seed};
  std::vector<BlockId> live;
  for (int i = 0; i < 400; ++i) {
    if (!live.empty() && random() % 5 < 2) {
      const std::size_t victim = random() % live.size();
      allocator.free(live[victim]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
    } else {
      const Bytes size = random() % 2 == 0 ? 1 + random() % 1_MiB : 1 + random() % 40_MiB;
      live.push_back(allocator.allocate(size, random() % 2)->block);
    }
    if (i == 300) allocator.empty_cache();
  }
}

void expect_equal_current(const MemoryStats& a, const MemoryStats& b) {
  const std::vector<std::string>& names = stat_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].ends_with(".current")) continue;
    EXPECT_EQ(stat_values(a)[i], stat_values(b)[i]) << names[i];
  }
}

TEST(InitialBlocks, TheCopyOfAnAllocatorIsEqualToIt) {
  for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:32"}) {
    RecordedSegments memory{64_GiB};
    CachingAllocator first{memory, {.settings = parse_allocator_settings(conf)}};
    fill(first, 7);
    RecordedSegments other_memory{64_GiB};
    CachingAllocator second{other_memory, {.settings = parse_allocator_settings(conf)}};
    EXPECT_NE(description(first), description(second));
    second.start_from(first.segments());
    EXPECT_EQ(description(first), description(second)) << conf;
    expect_equal_current(first.stats(), second.stats());
    EXPECT_EQ(second.stats().reserved_bytes.all().peak, first.stats().reserved_bytes.all().current);
    EXPECT_EQ(second.stats().num_device_alloc, 0);
    EXPECT_THAT(validate(second), IsEmpty());
  }
}

TEST(InitialBlocks, AnAllocatorThatHoldsMemoryIsNotStartedAgain) {
  RecordedSegments memory{64_GiB};
  CachingAllocator allocator{memory};
  allocator.allocate(1_MiB, 0);
  EXPECT_THROW(allocator.start_from({}), InternalError);
}

TEST(InitialBlocks, BlocksMustCoverTheirSegment) {
  RecordedSegments memory{64_GiB};
  SegmentView view{0, 2_MiB, 0, false, false, {}, {{{}, 0, 1_MiB, 1, BlockState::allocated}}};
  EXPECT_THROW(CachingAllocator{memory}.start_from(std::vector{view}), InternalError);
  view.blocks.clear();
  EXPECT_THROW(CachingAllocator{memory}.start_from(std::vector{view}), InternalError);
}

}  // namespace
}  // namespace vramlab
