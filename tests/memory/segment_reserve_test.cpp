// expandable_segments_reserve and its like (docs/allocator-rules.md, section 15): from the source, not
// recorded.
#include <cmath>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/oom_report.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr TorchVersion kReserveTorch{2, 14};

AllocatorSettings read_reserves(const std::string& conf,
                                AllocatorSettings before = {.torch = kReserveTorch}) {
  return parse_allocator_settings(conf, std::move(before));
}

// The figures of CUDACachingAllocatorReserveTest.cpp, on its card of 100 GiB.
TEST(SegmentReserve, IsAShareOfTheCardOrGiB) {
  EXPECT_EQ(read_reserves("expandable_segments_reserve:0.5").expandable_segments_reserve->of(100_GiB),
            50_GiB);
  EXPECT_EQ(read_reserves("expandable_segments_reserve:40G").expandable_segments_reserve->of(100_GiB),
            40_GiB);
  EXPECT_EQ(read_reserves("expandable_segments_reserve:40g").expandable_segments_reserve->of(100_GiB),
            40_GiB);
}

TEST(SegmentReserve, IsAtMostNineEighthsOfTheCard) {
  EXPECT_EQ(read_reserves("expandable_segments_reserve:122G").expandable_segments_reserve->of(80_GiB),
            90_GiB);
  EXPECT_EQ(read_reserves("expandable_segments_reserve:1e20G").expandable_segments_reserve->of(80_GiB),
            90_GiB);
}

// Not an error: what was set before holds. The settings are sticky.
TEST(SegmentReserve, ThatCannotBeReadIsPassedOver) {
  const AllocatorSettings before = read_reserves("expandable_segments_reserve:0.5");
  for (const char* bad : {"abc", "G", "-1", "0", "12X", "inf", "nan"}) {
    const AllocatorSettings after = read_reserves(std::string("expandable_segments_reserve:") + bad, before);
    EXPECT_EQ(after.expandable_segments_reserve, before.expandable_segments_reserve) << bad;
  }
  EXPECT_EQ(read_reserves("", before).expandable_segments_reserve, before.expandable_segments_reserve);
}

TEST(SegmentReserve, IsReadByClassToo) {
  const AllocatorSettings settings = read_reserves(
      "expandable_segments_reserve_by_class:[serving:0.25,bad:12X,sparse:8G],expandable_segments:True");
  ASSERT_EQ(settings.expandable_segments_reserve_by_class.size(), 2u);
  EXPECT_EQ(settings.expandable_segments_reserve_by_class[0].first, "serving");
  EXPECT_EQ(settings.expandable_segments_reserve_by_class[0].second.of(100_GiB), 25_GiB);
  EXPECT_EQ(settings.expandable_segments_reserve_by_class[1].first, "sparse");
  EXPECT_EQ(settings.expandable_segments_reserve_by_class[1].second.of(100_GiB), 8_GiB);
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_FALSE(settings.expandable_segments_reserve);
}

// CUDACachingAllocatorReserveDeviceTest.cpp: a twentieth of the card is reserved, four times as much asked
// for. That goes the normal way of an OOM, retry and counters included, though the card is empty.
TEST(SegmentReserve, SmallerThanARequestEndsInAnOrdinaryOom) {
  Rig rig(80_GiB, {.settings = read_reserves("expandable_segments:True,expandable_segments_reserve:0.05")});
  const BlockId small = rig.take(1_GiB);
  const auto result = rig.allocator.allocate(16_GiB, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_EQ(rig.stats().num_ooms, 1);
  EXPECT_EQ(rig.stats().num_alloc_retries, 1);
  EXPECT_EQ(result.oom().segment_reserve, 4100_MiB);  // 4 GiB = 4,096 MiB, up to pages of 20 MiB
  EXPECT_THAT(oom_details(result.oom()), Contains(HasSubstr("expandable_segments_reserve")));
  rig.give(small);
  rig.expect_sound();
}

TEST(SegmentReserve, IsNotNamedWhereTheCardIsTooSmall) {
  Rig rig(1_GiB, {.settings = read_reserves("expandable_segments:True")});
  const auto result = rig.allocator.allocate(100_GiB, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.oom().segment_reserve);
}

// Where one segment is full the next one begins: 5 GiB in segments of 2 GiB are three.
TEST(SegmentReserve, FullSegmentsAreFollowedByOthers) {
  Rig rig(8_GiB, {.settings = read_reserves("expandable_segments:True,expandable_segments_reserve:2G")});
  for (int i = 0; i < 5; ++i) rig.take(1000_MiB);
  std::size_t segments = 0;
  for (const SegmentView& segment : rig.allocator.segments()) {
    EXPECT_EQ(segment.size, 2060_MiB);  // 2 GiB up to pages of 20 MiB
    ++segments;
  }
  EXPECT_EQ(segments, 3u);
  EXPECT_EQ(rig.reserved(), 5000_MiB);
  rig.expect_sound();
}

TEST(KeysWithoutEffect, AreReadAndToldOf) {
  const std::string conf =
      "pinned_free_catch_all:True,release_lock_on_hipmalloc:True,pinned_use_hip_host_register:True,"
      "expandable_segments:True";
  const AllocatorSettings settings = read_reserves(conf);
  EXPECT_TRUE(settings.pinned_free_catch_all);
  EXPECT_TRUE(settings.release_lock_on_cudamalloc);
  EXPECT_TRUE(settings.pinned_use_cuda_host_register);
  EXPECT_THAT(keys_without_effect(conf),
              ElementsAre("pinned_free_catch_all is about host memory: it has no effect here.",
                          "release_lock_on_hipmalloc is about locks between threads: it has no effect here.",
                          "pinned_use_hip_host_register is about host memory: it has no effect here."));
  EXPECT_THAT(keys_without_effect("max_split_size_mb:64"), IsEmpty());
  EXPECT_THROW(read_reserves("pinned_free_catch_all:True", {.torch = {2, 11}}), InputError);
}

}  // namespace
}  // namespace vramlab
