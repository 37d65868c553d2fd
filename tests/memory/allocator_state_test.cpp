// Copies of the allocator's state, and the canonical description of it.
#include <random>

#include <gtest/gtest.h>

#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

std::vector<std::uint64_t> canonical(const Rig& rig) {
  std::vector<std::uint64_t> out;
  rig.segments.append_canonical_state(out);
  rig.allocator.append_canonical_state(out);
  return out;
}

/// A few hundred seeded operations; returns every address that was handed out.
std::vector<Address> churn(Rig& rig, std::vector<BlockId>& live, unsigned seed, int operations) {
  std::mt19937 random(seed);
  std::vector<Address> addresses;
  for (int i = 0; i < operations; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      const std::size_t victim = random() % live.size();
      rig.give(live[victim]);
      live[victim] = live.back();
      live.pop_back();
    } else {
      const Bytes size = Bytes{1} << (8 + random() % 18);
      const AllocationResult result = rig.allocator.allocate(size + random() % size, random() % 3);
      addresses.push_back(result ? result->address : 0);
      if (result) live.push_back(result->block);
    }
    if (random() % 50 == 0) rig.allocator.empty_cache();
  }
  return addresses;
}

class AllocatorState : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Settings, AllocatorState,
                         testing::Values("", "expandable_segments:True", "max_split_size_mb:32",
                                         "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9",
                                         "roundup_power2_divisions:4,max_split_size_mb:21"));

TEST_P(AllocatorState, ContinuesTheSameAfterItIsPutBack) {
  Rig rig(600_MiB, GetParam());
  std::vector<BlockId> live;
  churn(rig, live, 1, 400);

  const CachingAllocator::State saved = rig.allocator.save();
  const SimSegments::State saved_segments = rig.segments.save();
  const std::vector<BlockId> saved_live = live;
  const std::vector<std::uint64_t> before = canonical(rig);

  const std::vector<Address> first = churn(rig, live, 2, 400);
  const MemoryStats stats = rig.stats();
  const std::vector<std::uint64_t> end = canonical(rig);

  rig.allocator.restore(saved);
  rig.segments.restore(saved_segments);
  live = saved_live;
  EXPECT_EQ(canonical(rig), before);
  rig.expect_sound();
  EXPECT_EQ(churn(rig, live, 2, 400), first);
  EXPECT_EQ(rig.stats(), stats);
  EXPECT_EQ(canonical(rig), end);
}

// Block ids, peaks and totals are not part of the description.
TEST(CanonicalState, IgnoresHistory) {
  Rig a;
  Rig b;
  const BlockId x = a.take(5_MiB);
  a.take(3_MiB);
  a.give(x);
  a.take(5_MiB);

  const BlockId y = b.take(8_MiB);
  b.give(y);
  b.take(5_MiB);
  b.take(3_MiB);
  EXPECT_EQ(canonical(a), canonical(b));
  EXPECT_NE(a.stats(), b.stats());
}

// What was reserved and given back in between does not show either.
TEST(CanonicalState, IsTheSameAgainAfterARelease) {
  for (const char* conf : {"", "expandable_segments:True"}) {
    Rig rig(80_GiB, conf);
    rig.take(5_MiB);
    const auto before = canonical(rig);
    rig.give_all({rig.take(100_MiB), rig.take(1000, 4)});
    EXPECT_NE(canonical(rig), before);
    rig.allocator.empty_cache();
    EXPECT_EQ(canonical(rig), before) << conf;
  }
}

// All settings that a rule reads; the memory fraction is read once, as the limit.
TEST(CanonicalState, KnowsEverySettingThatARuleObeys) {
  using Settings = AllocatorSettings;
  const auto with = [](const auto& change) {
    Settings settings;
    change(settings);
    Rig rig;
    rig.allocator.set_settings(settings);
    return canonical(rig);
  };
  const auto plain = with([](Settings&) {});
  EXPECT_NE(with([](Settings& s) { s.max_split_size = 32_MiB; }), plain);
  EXPECT_NE(with([](Settings& s) { s.max_non_split_rounding = 32_MiB; }), plain);
  EXPECT_NE(with([](Settings& s) { s.large_segment_size = 32_MiB; }), plain);
  EXPECT_NE(with([](Settings& s) { s.roundup_power2_divisions[15] = 4; }), plain);
  EXPECT_NE(with([](Settings& s) { s.garbage_collection_threshold = 0.5; }), plain);
  EXPECT_NE(with([](Settings& s) { s.expandable_segments = true; }), plain);
  EXPECT_NE(with([](Settings& s) { s.graph_capture_record_stream_reuse = true; }), plain);
  EXPECT_NE(with([](Settings& s) { s.throw_on_cudamalloc_oom = true; }), plain);
  EXPECT_NE(with([](Settings& s) { s.torch = {2, 12}; }), plain);
  EXPECT_EQ(with([](Settings& s) { s.pinned_num_register_threads = 8; }), plain);
  EXPECT_EQ(with([](Settings& s) { s.release_lock_on_cudamalloc = true; }), plain);
}

TEST(CanonicalState, TellsDifferencesThatMatter) {
  const auto of = [](auto change) {
    Rig rig(80_GiB, with_settings("garbage_collection_threshold:0.9", 1_GiB));
    const BlockId a = rig.take(30_MiB);
    const BlockId b = rig.take(30_MiB);
    rig.give_all({a, rig.take(40_MiB)});
    change(rig, b);
    return canonical(rig);
  };
  const auto reference = of([](Rig&, BlockId) {});
  EXPECT_EQ(of([](Rig&, BlockId) {}), reference);
  EXPECT_NE(of([](Rig& rig, BlockId) { rig.give(rig.take(30_MiB)); }),
            reference);  // the age of the other block
  EXPECT_NE(of([](Rig& rig, BlockId) { rig.allocator.set_limit(2_GiB); }), reference);
  EXPECT_NE(of([](Rig& rig, BlockId) { rig.allocator.set_settings(""); }), reference);
  EXPECT_NE(of([](Rig& rig, BlockId b) { rig.allocator.record_stream(b, 3); }), reference);
  EXPECT_NE(of([](Rig& rig, BlockId) { rig.allocator.new_mem_pool(); }), reference);
  EXPECT_NE(of([](Rig& rig, BlockId) { rig.allocator.begin_capture(3); }), reference);
  EXPECT_NE(of([](Rig& rig, BlockId b) {
              rig.allocator.record_stream(b, 3);
              rig.give(b);
            }),
            of([](Rig& rig, BlockId b) {
              rig.allocator.record_stream(b, 3);
              rig.give(b);
              rig.allocator.finish_events();
            }));
}

// Without garbage collection ages do not matter and are left out.
TEST(CanonicalState, LeavesAgesOutWhereTheyDoNothing) {
  Rig a(80_GiB, "garbage_collection_threshold:0.9");  // no limit
  Rig b(80_GiB, "garbage_collection_threshold:0.9");
  a.give(a.take(30_MiB));
  b.give(b.take(30_MiB));
  b.give(b.take(30_MiB));
  EXPECT_EQ(canonical(a), canonical(b));
}

TEST(CachingAllocatorView, ShowsSegmentsInAddressOrder) {
  Rig rig;
  const BlockId a = rig.take(5_MiB);
  rig.take(1000, 9);
  const auto segments = rig.allocator.segments();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_LT(segments[0].base, segments[1].base);
  const SegmentView& large = segments[0].large ? segments[0] : segments[1];
  EXPECT_EQ(large.size, 20_MiB);
  ASSERT_EQ(large.blocks.size(), 2u);
  EXPECT_EQ(large.blocks[0].id, a);
  EXPECT_EQ(large.blocks[0].state, BlockState::allocated);
  EXPECT_EQ(large.blocks[1].state, BlockState::inactive);
  EXPECT_EQ(large.blocks[1].size, 15_MiB);
}

// R8.9: what a cached block says it was asked for.
TEST(CachingAllocatorView, KeepsStaleRequestedSizes) {
  Rig rig;
  const BlockId a = rig.take(3'000'000);
  const BlockId b = rig.take(4'000'000);
  rig.give(b);
  EXPECT_EQ(rig.allocator.segments()[0].blocks[1].requested, 4'000'000u);  // the block just freed survives
  rig.take(2'000'000);
  EXPECT_EQ(rig.allocator.segments()[0].blocks[2].requested, 4'000'000u);  // the remainder keeps it
  rig.give(a);
  EXPECT_EQ(rig.allocator.segments()[0].blocks[0].requested, 3'000'000u);
}

}  // namespace
}  // namespace vramlab
