#include "sim/memory/oom_report.hpp"

#include <gtest/gtest.h>

#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

// R4.12: boundaries belong to the smaller unit.
TEST(OomSize, HasPyTorchsFormat) {
  EXPECT_EQ(oom_size(0), "0 bytes");
  EXPECT_EQ(oom_size(1024), "1024 bytes");
  EXPECT_EQ(oom_size(1025), "1.00 KiB");
  EXPECT_EQ(oom_size(1048576), "1024.00 KiB");
  EXPECT_EQ(oom_size(1048577), "1.00 MiB");
  EXPECT_EQ(oom_size(20_MiB), "20.00 MiB");
  EXPECT_EQ(oom_size(1_GiB), "1024.00 MiB");
  EXPECT_EQ(oom_size(85017493504), "79.18 GiB");
}

// The first message of the recording pools_1, whole (torch 2.11.0). Allocated is what the counters say; the
// message adds the idle memory of private pools to it.
TEST(OomMessage, IsPyTorchsTextWordForWord) {
  OutOfMemory oom;
  oom.requested = 6478324;
  oom.rounded = 6478336;
  oom.segment = 20_MiB;
  oom.device_total = 85017493504;
  oom.device_free = 65831100416;
  oom.limit = 3221225472;
  oom.allocated = 2145978880;
  oom.reserved = 3221225472;
  oom.private_pools_idle = 502204928;  // 478.94 MiB
  OomSurroundings around;
  around.others = {{514, 3929866240}, {513, 2394445578}};
  around.own_process = 3929866240;
  EXPECT_EQ(
      oom_message(oom, around),
      "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.18 GiB of which "
      "61.31 GiB is free. Process 514 has 3.66 GiB memory in use. Process 513 has 2.23 GiB memory in use. "
      "Including non-PyTorch memory, this process has 3.66 GiB memory in use. 3.00 GiB allowed; Of the "
      "allocated memory 2.47 GiB is allocated by PyTorch, with 478.94 MiB allocated in private pools (e.g., "
      "CUDA Graphs), and 546.50 MiB is reserved by PyTorch but unallocated. If reserved but unallocated "
      "memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "
      "See documentation for Memory Management  "
      "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-"
      "conf)");
}

TEST(OomMessage, LeavesOutWhatIsNotThere) {
  OutOfMemory oom;
  oom.requested = 3_MiB;
  oom.segment = 20_MiB;
  oom.device_total = 1_GiB;
  oom.device_free = 10_MiB;
  oom.allocated = 900_MiB;
  oom.reserved = 960_MiB;
  const std::string text = oom_message(oom);
  EXPECT_EQ(text.find("Process"), std::string::npos);
  EXPECT_EQ(text.find("allowed;"), std::string::npos);
  EXPECT_EQ(text.find("private pools"), std::string::npos);
  EXPECT_NE(
      text.find("Of the allocated memory 900.00 MiB is allocated by PyTorch, and 60.00 MiB is reserved"),
      std::string::npos);
}

// R1.1
TEST(OomMessage, IsShortForAbsurdSizes) {
  OutOfMemory oom;
  oom.requested = Bytes{1} << 60;
  EXPECT_EQ(oom_message(oom), "CUDA out of memory. Tried to allocate more than 1EB memory.");
}

// R4.3 to R4.10: a request on stream 0 of a card that is full of every kind of idle memory.
TEST(OomDetails, SayWhatWasTriedAndWhichMemoryIsIdle) {
  Rig rig(1_GiB, with_settings("", 200_MiB));
  const BlockId cached = rig.take(40_MiB);
  const BlockId split = rig.take(12_MiB);  // a segment of its own
  const BlockId small = rig.take(1_KiB);
  const BlockId kept = rig.take(6_MiB);  // in a segment of 20 MiB, 14 MiB of it idle
  const BlockId other = rig.take(6_MiB, 7);
  rig.give_all({cached, split});

  const auto result = rig.allocator.allocate(190_MiB, kDefaultStream);
  ASSERT_FALSE(result);
  const OutOfMemory& oom = result.oom();
  EXPECT_EQ(oom.tried.collected, 0u);
  EXPECT_EQ(oom.tried.oversize_released, 0u);
  EXPECT_EQ(oom.tried.cache_released, 52_MiB);
  EXPECT_TRUE(oom.tried.limit_refused);
  EXPECT_EQ(oom.idle,
            (IdleMemory{.same_kind = 14_MiB, .other_size = 2_MiB - 1_KiB, .other_streams = 14_MiB}));
  EXPECT_EQ(oom_details(oom),
            (std::vector<std::string>{"52.00 MiB given back from the cache", "the limit refused the last try",
                                      "14.00 MiB idle in blocks of the same pool and stream, each too small",
                                      "2.00 MiB idle in the pool for the other size",
                                      "14.00 MiB idle in blocks of other streams"}));
  rig.give_all({small, kept, other});
}

TEST(OomDetails, TellOversizeReleaseAndCollectionApart) {
  Rig rig(1_GiB, with_settings("max_split_size_mb:100", 300_MiB));
  rig.give(rig.take(150_MiB));
  const auto result = rig.allocator.allocate(310_MiB, kDefaultStream);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.oom().tried.oversize_released, 150_MiB);
  EXPECT_EQ(result.oom().tried.cache_released, 0u);
}

}  // namespace
}  // namespace vramlab
