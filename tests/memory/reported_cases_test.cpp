// Cases from public bug reports and from the tests of other projects, with their exact values. Limits called
// "cap" are what the program can get from the driver.
#include <cmath>

#include <gtest/gtest.h>

#include "sim/memory/oom_report.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

constexpr StreamId kSideStream = 77;

// K1-01, second part (pytorch test_cuda.py): 256 floats.
TEST(ReportedCase, SmallTensorsAndTheirRelease) {
  Rig rig;
  const BlockId floats = rig.take(1024);
  EXPECT_EQ(rig.active(), 1024u);
  rig.give(floats);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.stats().active_bytes.all().freed, 1024);
  EXPECT_EQ(rig.reserved(), 0u);
}

// K1-02
TEST(ReportedCase, PackingTwentyMebibytes) {
  Rig a;
  a.take(3_MiB);
  a.take(9_MiB);
  a.take(8_MiB - 512);
  EXPECT_EQ(a.segment_count(), 1);
  EXPECT_EQ(a.allocated(), 20_MiB);
  EXPECT_EQ(a.requested(), 20_MiB - 512);
  Rig b;
  b.take(19_MiB + 512);
  EXPECT_EQ(b.reserved(), 20_MiB);
  EXPECT_EQ(b.allocated(), 20_MiB);
  Rig small;
  for (int i = 0; i < 3; ++i) small.take(1_MiB);
  EXPECT_EQ(small.segment_count(), 2);
}

// K1-03 (pytorch test_allocator_settings)
TEST(ReportedCase, RoundingSettingsAtRunTime) {
  Rig rig;
  const auto allocated_for = [&](Bytes size) {
    const BlockId block = rig.take(size);
    const Bytes allocated = rig.allocated();
    EXPECT_EQ(rig.requested(), size);
    rig.give(block);
    rig.allocator.empty_cache();
    return allocated;
  };
  EXPECT_EQ(allocated_for(88080384), 84_MiB);
  rig.allocator.set_settings("roundup_power2_divisions:4");
  EXPECT_EQ(allocated_for(88080384), 96_MiB);
  rig.allocator.set_settings("roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]");
  EXPECT_EQ(allocated_for(88080384), 88_MiB);
  EXPECT_EQ(allocated_for(419430400), 512_MiB);
  rig.allocator.set_settings("garbage_collection_threshold:0.6");
  EXPECT_EQ(allocated_for(88080384), 84_MiB);
}

// K1-05 (pytorch test_graph_memory_stats_and_use_result_after_destroy_graph)
TEST(ReportedCase, PoolOfACapturedGraph) {
  struct Case {
    Bytes size;
    int segments;
    Bytes reserved;
    int segments_after;
    Bytes reserved_after;
  };
  for (const Case& c : {Case{512, 1, 2_MiB, 1, 2_MiB}, Case{1_MiB, 2, 4_MiB, 1, 2_MiB},
                        Case{1_MiB + 512, 1, 20_MiB, 1, 20_MiB}, Case{10_MiB - 512, 2, 40_MiB, 1, 20_MiB},
                        Case{10_MiB + 512, 3, 36_MiB, 1, 12_MiB}}) {
    Rig rig;
    const PoolId graph = rig.allocator.begin_capture(kSideStream);
    BlockId b = rig.take(c.size, kSideStream);
    for (int i = 0; i < 5; ++i) {
      const BlockId t = rig.take(c.size, kSideStream);
      const BlockId r = rig.take(c.size, kSideStream);
      rig.give(t);
      rig.give(b);
      b = r;
    }
    rig.allocator.end_capture(graph);
    rig.allocator.empty_cache();  // changes nothing while the graph lives
    EXPECT_EQ(rig.segment_count(), c.segments) << c.size;
    EXPECT_EQ(rig.reserved(), c.reserved) << c.size;
    EXPECT_EQ(rig.active(), c.size);
    rig.allocator.release_graph(graph);
    rig.allocator.empty_cache();
    EXPECT_EQ(rig.segment_count(), c.segments_after) << c.size;
    EXPECT_EQ(rig.reserved(), c.reserved_after) << c.size;
    rig.expect_sound();
  }
}

// K1-06 (pytorch test_max_split_expandable)
TEST(ReportedCase, MaxSplitWithBothKindsOfSegments) {
  Rig rig(80_GiB, with_settings("max_split_size_mb:40", 120_MiB));
  const auto set = [&](const char* expandable) {
    rig.allocator.set_settings(std::string("max_split_size_mb:40,expandable_segments:") + expandable);
  };
  set("False");
  const BlockId a = rig.take(40_MiB);
  set("True");
  const BlockId b = rig.take(40_MiB);
  set("False");
  const BlockId c = rig.take(40_MiB);
  const AllocationResult fourth = rig.allocator.allocate(40_MiB, kDefaultStream);
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.oom().reserved, 120_MiB);
  EXPECT_EQ(fourth.oom().allocated, 120_MiB);
  rig.give_all({a, b, c});
  const std::int64_t retries = rig.stats().num_alloc_retries;
  History history;
  rig.allocator.set_listener(&history);
  rig.take(120_MiB);
  EXPECT_EQ(rig.reserved(), 120_MiB);
  EXPECT_EQ(rig.stats().num_alloc_retries - retries, 1);
  int frees = 0;
  Bytes unmapped = 0;
  for (const AllocatorEvent& event : history.events) {
    if (event.action == AllocatorEvent::Action::segment_free) ++frees;
    if (event.action == AllocatorEvent::Action::segment_unmap) unmapped += event.size;
  }
  EXPECT_EQ(frees, 2);
  EXPECT_EQ(unmapped, 40_MiB);
}

// K1-07 (pytorch test_garbage_collect_expandable)
TEST(ReportedCase, GarbageCollectionBesideExpandableSegments) {
  Rig rig(80_GiB, with_settings("garbage_collection_threshold:0.5", 120_MiB));
  const auto set = [&](const char* expandable) {
    rig.allocator.set_settings(std::string("garbage_collection_threshold:0.5,expandable_segments:") +
                               expandable);
  };
  set("False");
  const BlockId a = rig.take(40_MiB);
  set("True");
  const BlockId b = rig.take(40_MiB);
  rig.give_all({a, b});
  rig.take(80_MiB);
  EXPECT_EQ(rig.reserved(), 80_MiB);
  EXPECT_EQ(rig.segment_count(), 0);
  EXPECT_EQ(rig.stats().num_alloc_retries, 0);
}

// K1-08 (pytorch PR 74261, PR 76648, issue 106660)
TEST(ReportedCase, AgesOfGarbageAndCollectionThatIsSilentlyOff) {
  const auto fill = [](Rig& rig) { rig.give_all({rig.take(210_MiB), rig.take(212_MiB), rig.take(214_MiB)}); };

  Rig a(4000_MiB, "per_process_memory_fraction:0.25,garbage_collection_threshold:0.6");
  ASSERT_EQ(a.allocator.limit(), 1000_MiB);
  fill(a);
  for (int i = 0; i < 5; ++i) a.give(a.take(210_MiB));
  a.take(300_MiB);
  EXPECT_EQ(a.reserved(), 510_MiB);
  EXPECT_EQ(a.stats().num_device_free, 2);
  EXPECT_EQ(a.stats().num_alloc_retries, 0);

  Rig b(1000_MiB, "garbage_collection_threshold:0.6");
  fill(b);
  b.take(300_MiB);
  EXPECT_EQ(b.reserved(), 936_MiB);

  Rig c(1000_MiB, "garbage_collection_threshold:0.6");
  fill(c);
  c.take(400_MiB);
  EXPECT_EQ(c.reserved(), 400_MiB);
  EXPECT_EQ(c.stats().num_alloc_retries, 1);
}

// K1-09 (pytorch PR 44742)
TEST(ReportedCase, OversizeBlocksGoBeforeTheRest) {
  const auto filled = [](const char* conf, Bytes then) {
    Rig rig(1000_MiB, conf);
    rig.give_all({rig.take(500_MiB), rig.take(300_MiB)});
    rig.take(then);
    return std::pair(rig.reserved(), rig.stats().num_alloc_retries);
  };
  EXPECT_EQ(filled("max_split_size_mb:200", 400_MiB), std::pair(700_MiB, std::int64_t{0}));
  EXPECT_EQ(filled("max_split_size_mb:200", 700_MiB), std::pair(700_MiB, std::int64_t{0}));
  EXPECT_EQ(filled("", 700_MiB), std::pair(700_MiB, std::int64_t{1}));
}

// K1-10 (pytorch PR 136174)
TEST(ReportedCase, WindowForReusingOversizeBlocks) {
  const auto after = [](Bytes size) {
    Rig rig(80_GiB, "max_split_size_mb:400");
    rig.give(rig.take(1024_MiB));
    rig.take(size);
    return std::pair(rig.reserved(), rig.allocated());
  };
  EXPECT_EQ(after(500_MiB), std::pair(1524_MiB, 500_MiB));
  EXPECT_EQ(after(1004_MiB), std::pair(2028_MiB, 1004_MiB));
  EXPECT_EQ(after(1004_MiB + 1), std::pair(1024_MiB, 1024_MiB));
}

// K1-11 (pytorch issue 34330, reported figures)
TEST(ReportedCase, ConvolutionScript) {
  Rig rig;
  for (const Bytes size : {720'000u, 1'440'000u, 800u, 800u}) rig.take(size);
  rig.take(52428800);
  EXPECT_EQ(rig.reserved(), 75'497'472u);
  const BlockId z1 = rig.take(104857600);
  EXPECT_EQ(rig.reserved(), 180'355'072u);
  const BlockId z2 = rig.take(104857600);
  rig.give(z1);
  EXPECT_EQ(rig.reserved(), 285'212'672u);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 180'355'072u);
  rig.take(104857600);
  EXPECT_EQ(rig.reserved(), 285'212'672u);
  rig.give(z2);
}

// K1-12 (pytorch issue 50185)
TEST(ReportedCase, DeadCyclesThatAreStillLive) {
  Rig rig(10'905'190'400 + 301'004'226);  // 10.16 GiB + 287.06 MiB
  for (int i = 0; i < 26; ++i) rig.take(419430400);
  const AllocationResult last = rig.allocator.allocate(419430400, kDefaultStream);
  ASSERT_FALSE(last);
  EXPECT_EQ(oom_size(last.oom().segment), "400.00 MiB");
  EXPECT_EQ(last.oom().allocated, 10'905'190'400u);
  EXPECT_EQ(last.oom().reserved, 10'905'190'400u);
  EXPECT_EQ(oom_size(last.oom().reserved), "10.16 GiB");
  EXPECT_EQ(oom_size(last.oom().device_free), "287.06 MiB");
}

// K1-13 (pytorch issue 27600)
TEST(ReportedCase, OldMessageOfAnOlderRounding) {
  Rig rig(static_cast<Bytes>(7.92 * 1024) * 1_MiB - 547_MiB);
  rig.take(4000000);
  int i = 0;
  AllocationResult result = rig.allocator.allocate(400000000, kDefaultStream);
  while (result) {
    rig.take(40000);
    rig.take(4000000);
    ++i;
    result = rig.allocator.allocate(400000000, kDefaultStream);
  }
  EXPECT_EQ(i, 19);
  EXPECT_EQ(oom_size(result.oom().segment), "382.00 MiB");
  EXPECT_EQ(result.oom().reserved, 7340_MiB);
}

// K1-14 (vLLM PR 41268)
TEST(ReportedCase, WeightConversionSplitsCachedBlocks) {
  const auto load = [](const char* conf) {
    Rig rig(80_GiB, conf);
    std::vector<BlockId> raw530;
    std::vector<BlockId> raw270;
    for (int i = 0; i < 4; ++i) raw530.push_back(rig.take(530_MiB));
    for (int i = 0; i < 4; ++i) raw270.push_back(rig.take(270_MiB));
    for (std::size_t i = 0; i < 4; ++i) {
      rig.take(530_MiB);
      rig.give(raw530[i]);
      rig.take(270_MiB);
      rig.give(raw270[i]);
    }
    const Bytes before = rig.reserved();
    rig.allocator.empty_cache();
    return std::pair(before / 1_MiB, rig.reserved() / 1_MiB);
  };
  using Reserved = std::pair<Bytes, Bytes>;
  EXPECT_EQ(load(""), Reserved(4260, 3460));
  EXPECT_EQ(load("max_split_size_mb:20"), Reserved(4000, 3200));
  EXPECT_EQ(load("expandable_segments:True"), Reserved(4260, 3220));

  const auto minimal = [](const char* conf) {
    Rig rig(80_GiB, conf);
    rig.give(rig.take(530_MiB));
    rig.take(270_MiB);
    rig.take(270_MiB);
    const Bytes before = rig.reserved();
    rig.allocator.empty_cache();
    return std::pair(before / 1_MiB, rig.reserved() / 1_MiB);
  };
  EXPECT_EQ(minimal(""), Reserved(800, 800));
  EXPECT_EQ(minimal("max_split_size_mb:20"), Reserved(1070, 540));
  EXPECT_EQ(minimal("expandable_segments:True"), Reserved(540, 540));
}

// K1-15 (pytorch issue 123548)
TEST(ReportedCase, OversizeBlockThatIsNeverUsed) {
  struct End {
    int succeeded = 0;
    Bytes allocated = 0;
    Bytes reserved = 0;
    Bytes free = 0;
    std::int64_t segment_allocations = 0;
  };
  const auto run = [](const char* conf) {
    Rig rig(8192_MiB, conf);
    rig.give(rig.take(576000000));
    End end;
    AllocationResult result = rig.allocator.allocate(115200000, kDefaultStream);
    for (; result; result = rig.allocator.allocate(115200000, kDefaultStream)) ++end.succeeded;
    end.allocated = result.oom().allocated;
    end.reserved = result.oom().reserved;
    end.free = result.oom().device_free;
    end.segment_allocations = rig.stats().segment.all().allocated;
    return end;
  };
  const End split = run("max_split_size_mb:500");
  EXPECT_EQ(split.succeeded, 74);
  EXPECT_EQ(split.reserved, 8140_MiB);
  EXPECT_EQ(split.free, 52_MiB);
  EXPECT_EQ(split.segment_allocations, 75);
  EXPECT_EQ(run("").segment_allocations, 70);
  const End expandable = run("expandable_segments:True");
  EXPECT_EQ(expandable.succeeded, 74);
  EXPECT_EQ(expandable.allocated, 8'524'800'000u);
  EXPECT_EQ(expandable.reserved, 8140_MiB);
}

// K1-17 (Megatron-LM PR 6885)
TEST(ReportedCase, CacheOfOneStreamIsNoUseToAnother) {
  const auto run = [](StreamId first, bool release) {
    Rig rig;
    std::vector<BlockId> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(rig.take(1024_MiB, first));
    rig.give_all(blocks);
    if (release) rig.allocator.empty_cache();
    for (int i = 0; i < 4; ++i) rig.take(1024_MiB, 0);
    EXPECT_EQ(rig.stats().allocated_bytes.all().peak, static_cast<std::int64_t>(4096_MiB));
    return rig.reserved();
  };
  EXPECT_EQ(run(1, false), 8192_MiB);
  EXPECT_EQ(run(0, false), 4096_MiB);
  EXPECT_EQ(run(1, true), 4096_MiB);
}

// K1-18 (rf-detr PR 1490): graphs of five sizes, the largest captured first where they share a pool.
TEST(ReportedCase, OnePoolForAllGraphsOrOneEach) {
  const std::vector<Bytes> footprints{3276_MiB, 2560_MiB, 1946_MiB, 1434_MiB, 1024_MiB};
  const auto reserved = [&](bool shared) {
    Rig rig;
    std::optional<PoolId> pool;
    for (const Bytes footprint : footprints) {
      const PoolId used = rig.allocator.begin_capture(kSideStream, shared ? pool : std::nullopt);
      rig.give(rig.take(footprint, kSideStream));
      rig.allocator.end_capture(used);
      pool = used;
    }
    return rig.reserved();
  };
  EXPECT_EQ(reserved(false), 10240_MiB);
  EXPECT_EQ(reserved(true), 3276_MiB);
}

// K1-19 (pytorch PR 20801, issue 19408)
TEST(ReportedCase, OneHundredThousandTinyTensors) {
  Rig rig;
  for (int i = 0; i < 100'000; ++i) rig.take(40);
  EXPECT_EQ(rig.requested(), 4'000'000u);
  EXPECT_EQ(rig.allocated(), 51'200'000u);
  EXPECT_EQ(rig.reserved(), 52'428'800u);
  EXPECT_EQ(rig.segment_count(), 25);
}

// K1-20 (pytorch PR 15985, issue 15968)
TEST(ReportedCase, PeakMeter) {
  Rig rig;
  const auto used_and_peak = [&] {
    return std::pair(rig.allocated() / 1_MiB, rig.stats().allocated_bytes.all().peak / (1 << 20));
  };
  std::vector<BlockId> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(rig.take(256_MiB));
  rig.give_all(blocks);
  EXPECT_EQ(used_and_peak(), std::pair(Bytes{0}, std::int64_t{1024}));
  rig.allocator.reset_peak_stats();
  const BlockId c1 = rig.take(256_MiB);
  rig.take(256_MiB);
  rig.give(c1);
  EXPECT_EQ(used_and_peak(), std::pair(Bytes{256}, std::int64_t{512}));
}

// K1-21 (Torch-FL PR 364): a reset keeps the live total.
TEST(ReportedCase, ResetKeepsWhatIsLive) {
  Rig rig;
  rig.take(31'098_MiB);
  rig.allocator.reset_peak_stats();
  rig.give(rig.take(7'034_MiB));
  EXPECT_EQ(rig.stats().allocated_bytes.all().peak, static_cast<std::int64_t>(38'132_MiB));
}

// K1-22 (pytorch issue 1529)
TEST(ReportedCase, SameWorkInAnotherOrder) {
  const auto run = [](const char* conf, bool small_first) {
    Rig rig(1250_MiB, conf);
    const auto work = [&](int tensors, Bytes size) -> AllocationResult {
      std::vector<BlockId> blocks;
      for (int i = 0; i < tensors; ++i) {
        const AllocationResult result = rig.allocator.allocate(size, kDefaultStream);
        if (!result) return result;
        blocks.push_back(result->block);
      }
      rig.give_all(blocks);
      return rig.allocator.allocate(12_MiB, kDefaultStream);
    };
    AllocationResult result = small_first ? work(3, 300_MiB) : work(1, 1000_MiB);
    if (result) result = small_first ? work(1, 1000_MiB) : work(3, 300_MiB);
    return std::pair(result, rig.reserved());
  };
  const auto [oom, oom_reserved] = run("", true);
  ASSERT_FALSE(oom);
  EXPECT_EQ(oom.oom().segment, 1000_MiB);
  EXPECT_EQ(oom.oom().device_free, 950_MiB);
  EXPECT_EQ(oom.oom().allocated, 12_MiB);
  EXPECT_EQ(oom.oom().reserved, 300_MiB);
  const auto [fits, fits_reserved] = run("", false);
  EXPECT_TRUE(fits);
  EXPECT_EQ(fits_reserved, 1000_MiB);
  EXPECT_TRUE(run("expandable_segments:True", true).first);
  EXPECT_EQ(run("expandable_segments:True", true).second, 1020_MiB);
  EXPECT_TRUE(run("expandable_segments:True", false).first);
  EXPECT_EQ(run("expandable_segments:True", false).second, 1000_MiB);
  EXPECT_FALSE(run("max_split_size_mb:512", true).first);
}

// K1-23 (pytorch test_set_per_process_memory_fraction)
TEST(ReportedCase, MemoryFraction) {
  Rig rig(80_GiB, "per_process_memory_fraction:0.5");
  const BlockId tiny = rig.take(1000);
  const auto size = static_cast<Bytes>(0.499 * static_cast<double>(80_GiB)) - rig.reserved();
  rig.give(rig.take(size));
  rig.allocator.empty_cache();
  EXPECT_TRUE(rig.fails(40_GiB));
  rig.give(tiny);
  rig.allocator.empty_cache();
  EXPECT_FALSE(rig.fails(40_GiB));
}

// K1-24 (pytorch test_out_of_memory_retry)
TEST(ReportedCase, OomLeavesAUsableProcess) {
  Rig rig(80_GiB);
  const BlockId half = rig.take(40_GiB);
  rig.take(40_GiB - 2_MiB);
  EXPECT_TRUE(rig.fails(40_GiB));
  rig.give(half);
  EXPECT_FALSE(rig.fails(40_GiB));
}

// K1-25: the default workspace of the matrix library.
TEST(ReportedCase, MatrixLibraryWorkspace) {
  Rig rig;
  rig.take(8'519'680);
  EXPECT_EQ(rig.allocated(), 8_MiB + 128_KiB);
  EXPECT_EQ(rig.reserved(), 20_MiB);
}

}  // namespace
}  // namespace vramlab
