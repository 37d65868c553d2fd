// What differs between versions of PyTorch (docs/allocator-rules.md, section 15).
#include <fstream>
#include <iterator>

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

// PR 179473: the ordinary limit is checked first, and what it refuses goes the way of every request.
TEST(TorchVersion, ThrowOnCudamallocOomLeavesARequestThatTheLimitRefusesItsRetry) {
  for (const bool at_once : {false, true}) {
    const auto settings = of_torch({2, 12}, at_once ? "throw_on_cudamalloc_oom:True" : "");
    Rig rig(80_GiB, {.settings = settings, .limit = 100_MiB});
    rig.give(rig.take(60_MiB));
    EXPECT_FALSE(rig.fails(80_MiB));  // 60 MiB of cache are given back first
    EXPECT_EQ(rig.stats().num_alloc_retries, 1);
    EXPECT_EQ(rig.reserved(), 80_MiB);
    EXPECT_TRUE(rig.fails(120_MiB));
    EXPECT_EQ(rig.stats().num_ooms, 1);
    EXPECT_EQ(rig.stats().num_oom_rejections, 0);
  }
}

// The same where the configured fraction is the limit: of 1 GiB a tenth, 107,374,182 bytes.
TEST(TorchVersion, ThrowOnCudamallocOomNeverActsWhereTheFractionIsTheLimit) {
  Rig rig(1_GiB,
          {.settings = of_torch({2, 12}, "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.1")});
  EXPECT_TRUE(rig.fails(120_MiB));
  EXPECT_EQ(rig.stats().num_ooms, 1);
  EXPECT_EQ(rig.stats().num_oom_rejections, 0);
}

// The second check is of the fraction as it is configured now, which the limit of the allocator's beginning
// is not: rejected at once, without a retry, without num_ooms and without an entry in the history.
TEST(TorchVersion, ThrowOnCudamallocOomRejectsWhatGoesAboveTheConfiguredFraction) {
  Rig rig(1_GiB, {.settings = of_torch({2, 12})});
  History history;
  rig.allocator.set_listener(&history);
  rig.give(rig.take(60_MiB));
  rig.allocator.set_settings("throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.1");
  const std::size_t entries = history.events.size();
  const auto rejected = rig.allocator.allocate(80_MiB, kDefaultStream);
  ASSERT_FALSE(rejected);
  EXPECT_EQ(rejected.oom().rejected_above, 107'374'182u);
  EXPECT_EQ(rig.stats().num_oom_rejections, 1);
  EXPECT_EQ(rig.stats().num_ooms, 0);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
  EXPECT_EQ(rig.reserved(), 60_MiB);
  EXPECT_EQ(history.events.size(), entries);
  EXPECT_FALSE(rig.fails(40_MiB));  // from the cache; nothing is rejected that needs no new memory
  EXPECT_FALSE(rig.fails(20_MiB));
  EXPECT_THAT(oom_details(rejected.oom()), testing::ElementsAre(HasSubstr("rejected before the driver")));
  rig.allocator.reset_accumulated_stats();
  EXPECT_EQ(rig.stats().num_oom_rejections, 0);
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

TEST(TorchVersion, NewerOnesHaveTheNewestRulesAndThatIsSaid) {
  for (const TorchVersion newer : {TorchVersion{2, 13}, TorchVersion{2, 14}, TorchVersion{3, 0}}) {
    EXPECT_EQ(refusal(newer, "throw_on_cudamalloc_oom:True"), "accepted");
    EXPECT_FALSE(has_rule(newer, TorchRule::hint_always));
    EXPECT_TRUE(has_rule(newer, TorchRule::mem_pool_no_split));
    EXPECT_THAT(newer_version_note(newer), HasSubstr("torch " + to_text(newer) + " is newer"));
  }
  EXPECT_EQ(newer_version_note({2, 12}), "");
  EXPECT_EQ(newer_version_note({2, 1}), "");
}

TEST(TorchVersion, EveryRuleHasASourceAndAnIntervalOfVersions) {
  for (const VersionRule& row : version_rules()) {
    EXPECT_FALSE(row.source.empty()) << row.says;
    EXPECT_TRUE(has_rule(row.from, row.rule)) << row.says;
    if (row.to) {
      EXPECT_LE(row.from, *row.to) << row.says;
      EXPECT_FALSE(has_rule({row.to->major, row.to->minor + 1}, row.rule)) << row.says;
    }
    if (row.from > kOldestTorch) {
      EXPECT_FALSE(has_rule({row.from.major, row.from.minor - 1}, row.rule)) << row.says;
    }
  }
}

TEST(TorchVersion, TheDocumentHasTheTable) {
  std::ifstream file{std::string(VRAMLAB_SOURCE_DIR) + "/docs/allocator-rules.md"};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const VersionRule& row : version_rules()) {
    const std::string line = "| " + std::string(row.says) + " | " +
                             (row.from == kOldestTorch ? "-" : to_text(row.from)) + " | " +
                             (row.to ? to_text(*row.to) : "-") + " | " + std::string(row.source) + " |";
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace vramlab
