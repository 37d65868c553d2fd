#include "sim/memory/oom_report.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vramlab
