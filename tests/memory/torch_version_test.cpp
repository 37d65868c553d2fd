// What differs between versions of PyTorch (docs/allocator-rules.md, section 15).
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/oom_report.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

AllocatorSettings of_torch(TorchVersion torch, const std::string& conf = "") {
  return parse_allocator_settings(conf, {.torch = torch});
}

std::string refusal(TorchVersion torch, const std::string& conf) {
  try {
    of_torch(torch, conf);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TorchVersion, IsReadWithOrWithoutPatchAndBuild) {
  EXPECT_EQ(parse_torch_version("2.6"), (TorchVersion{2, 6}));
  EXPECT_EQ(parse_torch_version("2.11.0+cu130"), (TorchVersion{2, 11}));
  for (const char* bad : {"", "2", "2.x", "2.6rc1", "v2.6", "1.13", "2.0.1", "2.-1"}) {
    EXPECT_THROW(parse_torch_version(bad), InputError) << bad;
  }
}

TEST(TorchVersion, OlderOnesDoNotKnowNewerKeys) {
  EXPECT_THAT(refusal({2, 10}, "large_segment_size_mb:32"),
              HasSubstr("torch 2.10 does not know this key; it came with 2.11"));
  EXPECT_THAT(refusal({2, 5}, "max_non_split_rounding_mb:64"), HasSubstr("it came with 2.6"));
  EXPECT_THAT(refusal({2, 9}, "per_process_memory_fraction:0.5"), HasSubstr("it came with 2.10"));
  EXPECT_THAT(refusal({2, 11}, "throw_on_cudamalloc_oom:True"), HasSubstr("it came with 2.12"));
  EXPECT_EQ(refusal({2, 12}, "throw_on_cudamalloc_oom:True"), "accepted");
}

// K1-04: 20 is the lowest legal value from 2.9 on, before it was 21.
TEST(TorchVersion, SmallestMaxSplitSizeMovedBy1) {
  EXPECT_EQ(refusal({2, 9}, "max_split_size_mb:20"), "accepted");
  EXPECT_THAT(refusal({2, 8}, "max_split_size_mb:20"), HasSubstr("more than 20"));
  EXPECT_EQ(refusal({2, 8}, "max_split_size_mb:21"), "accepted");
}

// R9.3
TEST(TorchVersion, SeparatorsWereEnforcedBefore2_9) {
  EXPECT_EQ(refusal({2, 9}, "max_split_size_mb,64"), "accepted");
  EXPECT_THAT(refusal({2, 8}, "max_split_size_mb,64"), HasSubstr("demands \":\""));
}

// R9.4: sticky where large_segment_size_mb is unknown.
TEST(TorchVersion, NonSplitRoundingIsForgottenFrom2_11On) {
  const std::string conf = "max_non_split_rounding_mb:64";
  EXPECT_EQ(parse_allocator_settings("", of_torch({2, 10}, conf)).max_non_split_rounding, 64_MiB);
  EXPECT_EQ(parse_allocator_settings("", of_torch({2, 11}, conf)).max_non_split_rounding, 20_MiB);
}

TEST(TorchVersion, ThrowOnCudamallocOomSkipsTheRetry) {
  for (const bool at_once : {false, true}) {
    const auto settings = of_torch({2, 12}, at_once ? "throw_on_cudamalloc_oom:True" : "");
    Rig rig(80_GiB, {.settings = settings, .limit = 100_MiB});
    rig.give(rig.take(60_MiB));
    EXPECT_EQ(rig.fails(80_MiB), at_once);
    EXPECT_EQ(rig.stats().num_alloc_retries, at_once ? 0 : 1);
    EXPECT_EQ(rig.reserved(), at_once ? 60_MiB : 80_MiB);
    EXPECT_EQ(rig.stats().num_ooms, at_once ? 1 : 0);
  }
}

TEST(TorchVersion, MessageAdvisesExpandableSegmentsThoughOnUpTo2_11) {
  for (const TorchVersion torch : {TorchVersion{2, 11}, TorchVersion{2, 12}}) {
    Rig rig(1_GiB, {.settings = of_torch(torch, "expandable_segments:True")});
    const auto result = rig.allocator.allocate(2_GiB, kDefaultStream);
    ASSERT_FALSE(result);
    const bool advises = oom_message(result.oom()).find("expandable_segments:True") != std::string::npos;
    EXPECT_EQ(advises, torch == (TorchVersion{2, 11}));
  }
}

TEST(TorchVersion, MemPoolsCameStepByStep) {
  const auto make = [](TorchVersion torch, PoolOptions options) {
    Rig rig(1_GiB, {.settings = of_torch(torch)});
    rig.allocator.new_mem_pool(options);
  };
  EXPECT_THROW(make({2, 4}, {}), InputError);
  EXPECT_NO_THROW(make({2, 5}, {}));
  EXPECT_THROW(make({2, 8}, {.use_on_oom = true}), InputError);
  EXPECT_THROW(make({2, 9}, {.no_split = true}), InputError);
  EXPECT_NO_THROW(make({2, 10}, {.use_on_oom = true, .no_split = true}));
}

}  // namespace
}  // namespace vramlab
