// Every layout of R4.12 and R4.12b, and every message that was recorded.
#include "recordings/logs/oom_message.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "recordings/logs/oracle_log.hpp"
#include "recordings/snapshot/marks.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data";
const fs::path kShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data";

bool can_be(const std::optional<PrintedSize>& size, Bytes bytes) {
  return size && size->low <= bytes && bytes <= size->high;
}

// R4.12: two decimals, so half a hundredth to either side; bytes are exact; MB means MiB.
TEST(PrintedSize, CarriesItsRounding) {
  const auto capacity = parse_printed_size("79.18 GiB of which");
  ASSERT_TRUE(capacity);
  EXPECT_EQ(capacity->text, "79.18 GiB");
  EXPECT_EQ(capacity->low, 85013508914u);   // 79.175 · 2^30, rounded outwards by at most 2
  EXPECT_EQ(capacity->high, 85024246334u);  // 79.185 · 2^30
  EXPECT_TRUE(can_be(capacity, 85017493504));
  EXPECT_EQ(parse_printed_size("512 bytes")->low, 512u);
  EXPECT_EQ(parse_printed_size("512 bytes")->high, 512u);
  EXPECT_EQ(parse_printed_size("20.00 MB")->bytes, 20_MiB);
  EXPECT_EQ(parse_printed_size("2.5GiB")->bytes, 2560_MiB);
  EXPECT_EQ(parse_printed_size("745058059.69 GiB")->bytes >> 50, 710u);  // K1-24: 8 · 10^17 bytes
  for (const char* bad : {"", "GiB", "1.", "1. GiB", "x MiB", "12", "-1 MiB", "99999999999999999999 GiB"}) {
    EXPECT_FALSE(parse_printed_size(bad)) << bad;
  }
}

TEST(OomMessageLayouts, UpToTorch14) {
  const OomMessage m = parse_oom_message(
      "RuntimeError: CUDA out of memory. Tried to allocate 381.50 MiB (GPU 1; 7.92 GiB total capacity; 7.16 "
      "GiB "
      "already allocated; 231.56 MiB free; 452.50 KiB cached)");
  EXPECT_EQ(m.layout, OomLayout::torch_cached);
  EXPECT_EQ(m.device, 1);
  EXPECT_EQ(m.tried->text, "381.50 MiB");
  EXPECT_EQ(m.total->text, "7.92 GiB");
  EXPECT_EQ(m.allocated->text, "7.16 GiB");
  EXPECT_EQ(m.free->text, "231.56 MiB");
  EXPECT_EQ(m.idle->text, "452.50 KiB");
  EXPECT_FALSE(m.reserved);
}

TEST(OomMessageLayouts, Torch15To20) {
  const OomMessage m = parse_oom_message(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.92 GiB total "
      "capacity; 10.16 GiB already allocated; 0 bytes free; 10.40 GiB reserved in total by PyTorch) If "
      "reserved "
      "memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.");
  EXPECT_EQ(m.layout, OomLayout::torch_reserved);
  EXPECT_EQ(m.free->text, "0 bytes");
  EXPECT_EQ(m.reserved->text, "10.40 GiB");
  EXPECT_FALSE(m.idle);
}

// 2.1 wrote "capacty"; a traceback around it, ranks, wrapped lines and colours change nothing.
TEST(OomMessageLayouts, Torch21InATraceback) {
  const OomMessage m = parse_oom_message(
      "[rank0]: Traceback (most recent call last):\n  File \"a.py\", line "
      "1\n\x1b[31mtorch.cuda.OutOfMemoryError: "
      "CUDA out of memory. Tried to\nallocate 64.00 MiB. GPU 3 has a total capacty of 79.15 GiB of which "
      "38.09\n"
      "  GiB is free. Process 77 has 1.00 GiB memory in use. Including non-PyTorch memory, this process has "
      "40.00 "
      "GiB memory in use. Of the allocated memory 39.10 GiB is allocated by PyTorch, and 427.46 MiB is "
      "reserved by "
      "PyTorch but unallocated.\x1b[0m\nDuring handling: Tried to allocate 1.00 MiB. GPU 0 has");
  EXPECT_EQ(m.layout, OomLayout::torch_sentences);
  EXPECT_EQ(m.messages, 2u);
  EXPECT_EQ(m.device, 3);
  EXPECT_EQ(m.tried->text, "64.00 MiB");
  EXPECT_EQ(m.total->text, "79.15 GiB");
  EXPECT_EQ(m.free->text, "38.09 GiB");
  ASSERT_EQ(m.others.size(), 1u);
  EXPECT_EQ(m.others[0].pid, 77u);
  EXPECT_EQ(m.own_process->text, "40.00 GiB");
  EXPECT_EQ(m.allocated->text, "39.10 GiB");
  EXPECT_EQ(m.idle->text, "427.46 MiB");
  EXPECT_FALSE(m.allowed);
}

// What a terminal obeys or has overwritten is not part of the message: colours and erased lines as `grep
// --color` writes them, links, a character set, titles, a bar of tqdm, and blanks as moves of the cursor.
TEST(OomMessageLayouts, TerminalCodesAndProgressBarsChangeNothing) {
  const std::string_view plain =
      "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 3 has a total capacity of 79.15 GiB of which "
      "38.09 GiB "
      "is free. Of the allocated memory 39.10 GiB is allocated by PyTorch, and 427.46 MiB is reserved by "
      "PyTorch "
      "but unallocated.";
  const auto with = [&](std::string_view place, std::string_view inserted, bool instead = false) {
    std::string text{plain};
    const std::size_t at = text.find(place);
    text.replace(at, instead ? place.size() : 0, inserted);
    return text;
  };
  for (const std::string& text :
       {with("CUDA", "\x1b[01;31m\x1b[K"), with("allocate 64", "\x1b[K"), with("GiB of", "\x1b(B\x1b[m"),
        with("38.09", "\x1b[?25l\x1b[38;5;196m"), with("GPU 3", "\x1b]8;;file:///train.py\x1b\\"),
        with("is free", "\x1b]0;train.py: 45 %\x07"), with("64.00", "\\u001b[31m"),
        with("capacity", "\x1b[2K\r"), with("CUDA", "\r 45%|####  | 45/100\r 46%|####  | 46/100\r"),
        with(" of which ", " of which\x1b[1C", true),
        with("GiB is free", "\r 45%|####  | GPU 5.00 GiB 45/100 [00:12<00:15]\r"),
        with(" GiB is", "\x1b[0K\r\n GiB is", true)}) {
    const OomMessage m = parse_oom_message(text);
    EXPECT_EQ(m.layout, OomLayout::torch_sentences) << text;
    ASSERT_TRUE(m.tried && m.total && m.free && m.allocated && m.idle) << text;
    EXPECT_EQ(m.device, 3) << text;
    EXPECT_EQ(m.tried->text, "64.00 MiB") << text;
    EXPECT_EQ(m.total->text, "79.15 GiB") << text;
    EXPECT_EQ(m.free->text, "38.09 GiB") << text;
    EXPECT_EQ(m.allocated->text, "39.10 GiB") << text;
    EXPECT_EQ(m.idle->text, "427.46 MiB") << text;
  }
}

// A sequence that was cut off hides no more than itself.
TEST(OomMessageLayouts, ACutTerminalCodeHidesNothing) {
  for (const std::string_view code : {"\x1b[31", "\x1b]0;title", "\x1b", "\x1b]"}) {
    const OomMessage m =
        parse_oom_message("CUDA out of memory. Tried to allocate 64.00 MiB. GPU 3 has" + std::string{code});
    ASSERT_TRUE(m.tried) << code;
    EXPECT_EQ(m.tried->text, "64.00 MiB");
  }
  EXPECT_TRUE(parse_oom_message("\x1b]0;title\nCUDA out of memory. Tried to allocate 64.00 MiB.").tried);
}

// R4.12b and what is not a lack of device memory (K1-24, K2-05).
TEST(OomMessageLayouts, WithoutFigures) {
  const auto layout = [](const char* text) { return parse_oom_message(text).layout; };
  for (const char* text : {"RuntimeError: CUDA error: out of memory",
                           "CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                           "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
                           "ncclUnhandledCudaError: NCCL ... Cuda failure 2 'out of memory'",
                           "cudaErrorMemoryAllocation: out of memory"}) {
    EXPECT_EQ(layout(text), OomLayout::driver) << text;
  }
  EXPECT_EQ(layout("CUDA out of memory. Tried to allocate more than 1EB memory."), OomLayout::absurd_size);
  const OomMessage jax = parse_oom_message(
      "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
      "4294967296 "
      "bytes.");
  EXPECT_EQ(jax.layout, OomLayout::resource_exhausted);
  EXPECT_EQ(jax.tried->bytes, 4_GiB);
  const OomMessage host = parse_oom_message(
      "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate "
      "memory: you "
      "tried to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)");
  EXPECT_EQ(host.layout, OomLayout::host_memory);
  EXPECT_EQ(host.tried->bytes, 8_GiB);
  EXPECT_EQ(layout("RuntimeError: CUDA error: device-side assert triggered"), OomLayout::other_cuda_error);
  EXPECT_EQ(layout("ValueError: batch must be positive"), OomLayout::none);
  EXPECT_EQ(layout(""), OomLayout::none);
}

// Cutting a message anywhere must neither crash nor invent a figure.
TEST(OomMessage, CutAnywhereHasOnlyWholeFigures) {
  const std::string whole =
      "CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 has a total capacity of 79.18 GiB of which "
      "86.62 MiB is "
      "free. Process 1183 has 75.66 GiB memory in use. Including non-PyTorch memory, this process has 3.42 "
      "GiB memory "
      "in use. 78.12 GiB allowed; Of the allocated memory 2.66 GiB is allocated by PyTorch, and 192.99 MiB "
      "is reserved "
      "by PyTorch but unallocated.";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const OomMessage m = parse_oom_message(std::string_view{whole}.substr(0, n));
    EXPECT_TRUE(!m.tried || m.tried->text == "98.00 MiB") << n;
    EXPECT_TRUE(!m.total || m.total->text == "79.18 GiB") << n;
    EXPECT_TRUE(!m.free || m.free->text == "86.62 MiB") << n;
    EXPECT_TRUE(!m.allowed || m.allowed->text == "78.12 GiB") << n;
    EXPECT_TRUE(!m.idle || m.idle->text == "192.99 MiB") << n;
  }
}

/// The messages of a log against its counters; returns how many there were.
std::size_t check_log(const fs::path& file) {
  const OracleLog log = read_oracle_log(file);
  const auto column = [&](const char* key) {
    return static_cast<std::size_t>(std::find(log.keys.begin(), log.keys.end(), key) - log.keys.begin());
  };
  const std::size_t allocated = column("allocated_bytes.all.current");
  const std::size_t reserved = column("reserved_bytes.all.current");
  const auto limit = static_cast<Bytes>(log.fraction * static_cast<double>(log.total_memory));  // R9.1
  std::size_t messages = 0;
  for (const OracleOperation& op : log.operations) {
    if (op.text.empty() || op.counters.empty()) continue;
    ++messages;
    const OomMessage m = parse_oom_message(op.text);
    const bool async = log.conf.find("cudaMallocAsync") != std::string::npos;
    EXPECT_EQ(m.layout, async ? OomLayout::cuda_malloc_async : OomLayout::torch_sentences) << op.text;
    EXPECT_EQ(m.device, 0) << op.text;
    EXPECT_TRUE(can_be(m.total, log.total_memory)) << op.text;
    EXPECT_TRUE(can_be(m.allowed, limit)) << op.text;
    EXPECT_TRUE(m.free) << op.text;
    const auto counted = static_cast<Bytes>(op.counters[allocated]);
    if (async) {
      EXPECT_TRUE(can_be(m.allocated, counted)) << op.text;
      EXPECT_TRUE(can_be(m.tried, op.bytes)) << op.text;
      continue;
    }
    EXPECT_GE(m.tried->high, op.bytes) << op.text;  // a segment, at least as large as the request
    if (!m.allocated || !m.idle) {
      ADD_FAILURE() << op.text;
      continue;
    }
    const Bytes pools_low = m.private_pools ? m.private_pools->low : 0;
    const Bytes pools_high = m.private_pools ? m.private_pools->high : 0;
    EXPECT_LE(m.allocated->low, counted + pools_high) << op.text;
    EXPECT_GE(m.allocated->high, counted + pools_low) << op.text;
    const auto held = static_cast<Bytes>(op.counters[reserved]);
    EXPECT_LE(m.allocated->low + m.idle->low, held) << op.text;
    EXPECT_GE(m.allocated->high + m.idle->high, held) << op.text;
  }
  return messages;
}

std::size_t check_folder(const fs::path& folder) {
  std::size_t messages = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().string().ends_with(".json.gz")) messages += check_log(entry.path());
  }
  return messages;
}

// Sections 16.1, 16.1b, 16.2: 34 + 64 + 42 + 34 + 145 + 18 messages.
TEST(RecordedMessages, OfTheFixturesAgreeWithTheCounters) {
  EXPECT_EQ(check_folder(kFixtures / "oracle"), 337u);
}

TEST(RecordedMessages, OfAllLogsAgreeWithTheCounters) {
  if (!fs::exists(kShared / "oracle")) GTEST_SKIP() << "no " << kShared / "oracle";
  EXPECT_EQ(check_folder(kShared / "oracle"), 1826u);
}

TEST(RecordedMessages, OfTrainingRunsAgreeWithTheirTruth) {
  if (!fs::exists(kShared / "recorded")) GTEST_SKIP() << "no " << kShared / "recorded";
  std::size_t messages = 0;
  for (const auto& entry : fs::directory_iterator(kShared / "recorded")) {
    if (!entry.path().string().ends_with(".truth.json.gz")) continue;
    const TruthFile truth = read_truth_file(entry.path());
    for (const TruthMark& mark : truth.marks) {
      if (mark.label.find("OOM") == std::string::npos) continue;
      ++messages;
      const OomMessage m = parse_oom_message(mark.label);
      EXPECT_EQ(m.layout, OomLayout::torch_sentences) << mark.label;
      EXPECT_TRUE(can_be(m.total, truth.total_memory)) << mark.label;
      EXPECT_TRUE(can_be(m.allowed, *truth.limit)) << mark.label;
      EXPECT_TRUE(m.tried && m.free && m.own_process && m.allocated && m.idle) << mark.label;
    }
  }
  EXPECT_EQ(messages, 15u);
}

}  // namespace
}  // namespace vramlab
