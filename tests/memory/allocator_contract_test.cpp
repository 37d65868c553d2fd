#include "tests/memory/allocator_contract.hpp"

#include <string>

#include "sim/memory/others/bfc_allocator.hpp"
#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/others/fixed_pool.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

TEST_P(AllocatorContract, GivesBlocksThatDoNotOverlap) {
  std::mt19937 random(3);
  std::map<Address, std::pair<Bytes, BlockId>> live;
  for (int i = 0; i < 2000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      auto victim = live.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % live.size()));
      allocator.free(victim->second.second);
      live.erase(victim);
      continue;
    }
    const Bytes size = 1 + random() % (Bytes{1} << (9 + random() % 15));
    const AllocationResult result = allocator.allocate(size, kDefaultStream);
    if (!result) continue;
    const auto [entry, fresh] = live.emplace(result->address, std::pair(size, result->block));
    ASSERT_TRUE(fresh);
    if (entry != live.begin()) {
      const auto before = std::prev(entry);
      ASSERT_LE(before->first + before->second.first, entry->first);
    }
    if (const auto after = std::next(entry); after != live.end()) {
      ASSERT_LE(entry->first + size, after->first);
    }
  }
}

TEST_P(AllocatorContract, NeverReservesMoreThanTheDeviceHas) {
  std::vector<BlockId> live;
  while (true) {
    const AllocationResult result = allocator.allocate(7_MiB, kDefaultStream);
    if (!result) break;
    live.push_back(result->block);
    ASSERT_LE(allocator.stats().reserved_bytes.all().current, static_cast<std::int64_t>(1_GiB));
  }
  EXPECT_GT(live.size(), 100u);
  for (const BlockId block : live) allocator.free(block);
  EXPECT_EQ(allocator.stats().allocated_bytes.all().current, 0);
}

TEST_P(AllocatorContract, AnswersARequestThatCannotFitWithItsFigures) {
  const AllocationResult result = allocator.allocate(2_GiB, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.oom().requested, 2_GiB);
  EXPECT_EQ(result.oom().device_total, 1_GiB);
  EXPECT_TRUE(allocator.allocate(500_MiB, kDefaultStream));  // and goes on
}

TEST_P(AllocatorContract, GivesEverythingBackWhenItIsEmpty) {
  std::vector<BlockId> live;
  for (Bytes size = 100; size < 100_MiB; size *= 3)
    live.push_back(allocator.allocate(size, kDefaultStream)->block);
  for (const BlockId block : live) allocator.free(block);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved_bytes.all().current, 0);
}

TEST_P(AllocatorContract, ResetsPeaks) {
  allocator.free(allocator.allocate(100_MiB, kDefaultStream)->block);
  EXPECT_GE(allocator.stats().allocated_bytes.all().peak, static_cast<std::int64_t>(100_MiB));
  allocator.reset_peak_stats();
  EXPECT_EQ(allocator.stats().allocated_bytes.all().peak, 0);
}

TEST_P(AllocatorContract, AnswersNothingWithANullPointer) {
  const AllocationResult nothing = allocator.allocate(0, kDefaultStream);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->block, kNullBlock);
  EXPECT_EQ(nothing->address, 0u);
  allocator.free(nothing->block);
  EXPECT_EQ(allocator.stats().allocation.all(), Stat{});
}

TEST_P(AllocatorContract, RejectsBlocksThatAreNotLive) {
  const BlockId block = allocator.allocate(1000, kDefaultStream)->block;
  allocator.free(block);
  EXPECT_THROW(allocator.free(block), InternalError);
}

AllocatorUnderTest caching(const std::string& conf, FreeListKind kind = FreeListKind::binned) {
  AllocatorOptions options = with_settings(conf);
  options.free_list = kind;
  auto rig = std::make_shared<Rig>(1_GiB, options);
  return {rig, {rig, &rig->allocator}};
}

/// Any allocator that is made of a segment source and its options.
template <class Made, class... Options>
AllocatorUnderTest on_a_card(const Options&... options) {
  struct Ground {
    explicit Ground(const Options&... given) : allocator(segments, given...) {}
    SimulatedCard card{1_GiB, 0};
    SimSegments segments{card};
    Made allocator;
  };
  auto ground = std::make_shared<Ground>(options...);
  return {ground, {ground, &ground->allocator}};
}

AllocatorUnderTest bfc(bool allow_growth) {
  return on_a_card<BfcAllocator>(BfcOptions{.limit = 1_GiB, .allow_growth = allow_growth});
}

INSTANTIATE_TEST_SUITE_P(
    Allocators, AllocatorContract,
    testing::Values(
        ContractParameter{"caching", [] { return caching(""); }},
        ContractParameter{"caching_with_ordered_list", [] { return caching("", FreeListKind::ordered); }},
        ContractParameter{"caching_expandable", [] { return caching("expandable_segments:True"); }},
        ContractParameter{"caching_max_split", [] { return caching("max_split_size_mb:32"); }},
        ContractParameter{"cuda_malloc_async", [] { return on_a_card<AsyncAllocator>(); }},
        ContractParameter{"no_cache", [] { return on_a_card<DirectAllocator>(); }},
        ContractParameter{"fixed_pool", [] { return on_a_card<FixedPoolAllocator>(); }},
        ContractParameter{"bfc", [] { return bfc(false); }},
        ContractParameter{"bfc_growing", [] { return bfc(true); }}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace vramlab
