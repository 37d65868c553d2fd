// Messages of public reports, with the figures that stand there and the causes that they had.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/oom/diagnosis.hpp"
#include "lab/oom/reasoning.hpp"

namespace vramlab {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

OomDiagnosis explain(const std::string& text) {
  const OomLog log = read_oom_log(text);
  if (log.failures.empty()) return diagnose_counters(log.counters.at(0));
  return diagnose_oom(log.failures.front().message, "text", log);
}

std::vector<std::string> possible(const OomDiagnosis& diagnosis) {
  std::vector<std::string> causes;
  for (const PossibleCause& one : diagnosis.possible_causes) causes.push_back(one.cause);
  return causes;
}

Bytes shown(const OomDiagnosis& diagnosis, const std::string& name) {
  for (const ExplainedFigure& one : diagnosis.figures) {
    if (one.name == name) return one.bytes;
  }
  ADD_FAILURE() << "no figure " << name;
  return 0;
}

// PyTorch's text of 2.5: `processes` stands between the free memory and what is allocated.
std::string sentences(const std::string& backend, const std::string& tried, const std::string& total,
                      const std::string& free, const std::string& processes, const std::string& allocated,
                      const std::string& idle) {
  return "torch.OutOfMemoryError: " + backend + " out of memory. Tried to allocate " + tried +
         ". GPU 0 has a total capacity of " + total + " of which " + free + " is free. " + processes +
         "Of the allocated memory " + allocated + " is allocated by PyTorch, and " + idle +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";
}

// OpenHelix cobra 24: 22.14 + 0.889 = 23.03 <= 23.57, and 23.57 + 0.113 of 23.69 leave no room for another.
TEST(ListedProcesses, TheOwnOneIsFoundFromTheSums) {
  const OomDiagnosis d =
      explain(sentences("CUDA", "158.00 MiB", "23.69 GiB", "115.69 MiB",
                        "Process 21422 has 23.57 GiB memory in use. ", "22.14 GiB", "910.35 MiB"));
  EXPECT_EQ(d.cause, OomCause::fragmentation);
  EXPECT_EQ(d.own_pid, 21422u);
  EXPECT_EQ(d.others, 0u);
  EXPECT_NEAR(static_cast<double>(shown(d, "own_context")), 0.54 * (1 << 30), 11e6);
  EXPECT_NEAR(static_cast<double>(*d.short_by), 42.31 * (1 << 20), 11e3);
  EXPECT_THAT(d.commands,
              ElementsAre("export PYTORCH_ALLOC_CONF=expandable_segments:True  # before PyTorch 2.9: "
                          "PYTORCH_CUDA_ALLOC_CONF"));
}

// Of several listed ones it is the smallest that can hold what is reserved.
TEST(ListedProcesses, TheOwnOneIsFoundAmongSeveral) {
  const OomDiagnosis d =
      explain(sentences("CUDA", "2.00 GiB", "79.15 GiB", "1.00 GiB",
                        "Process 11 has 60.00 GiB memory in use. Process 12 has 18.00 GiB memory in use. ",
                        "17.00 GiB", "400.00 MiB"));
  EXPECT_EQ(d.own_pid, 12u);
  EXPECT_EQ(d.cause, OomCause::other_processes);
  EXPECT_EQ(d.others, 60_GiB);
}

// Room for a further process beside the listed ones: this one is not among them.
TEST(ListedProcesses, WhereThereIsRoomTheListedAreOthers) {
  const OomDiagnosis d =
      explain(sentences("CUDA", "2.00 GiB", "79.15 GiB", "1.00 GiB",
                        "Process 11 has 60.00 GiB memory in use. ", "17.00 GiB", "400.00 MiB"));
  EXPECT_FALSE(d.own_pid);
  EXPECT_EQ(d.others, 60_GiB);
}

TEST(ListedProcesses, SmallEqualOnesAreRanksOfTheJob) {
  const OomDiagnosis d = explain(
      sentences("CUDA", "700.00 MiB", "23.69 GiB", "300.00 MiB",
                "Process 21 has 418.00 MiB memory in use. Process 22 has 418.00 MiB memory in use. Process "
                "23 has 420.00 MiB "
                "memory in use. Including non-PyTorch memory, this process has 22.15 GiB memory in use. ",
                "21.50 GiB", "100.00 MiB"));
  EXPECT_EQ(d.cause, OomCause::other_processes);
  EXPECT_THAT(d.verdict, HasSubstr("3 other processes hold about 418.00 MiB each"));
  EXPECT_THAT(d.commands.at(0), HasSubstr("torch.cuda.set_device(local_rank)"));
}

// pytorch 47497 (Windows: 24.00 GiB is the nominal size), 16417, 175431; autotrain-advanced 737; fairseq
// 2442.
TEST(RefusedWithRoom, IsLeftOpen) {
  const OomDiagnosis windows = explain(
      "RuntimeError: CUDA out of memory. Tried to allocate 90.00 MiB (GPU 0; 24.00 GiB total capacity; 13.09 "
      "GiB "
      "already allocated; 5.75 GiB free; 13.28 GiB reserved in total by PyTorch)");
  EXPECT_EQ(windows.cause, OomCause::undetermined);
  EXPECT_EQ(possible(windows).at(0), "loader workers and page file on Windows");
  EXPECT_FALSE(windows.short_by);
  const OomDiagnosis old = explain(
      "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 "
      "MiB "
      "already allocated; 9.28 GiB free; 4.68 MiB cached)");
  EXPECT_EQ(old.cause, OomCause::undetermined);
  EXPECT_THAT(possible(old), ElementsAre("loader workers and page file on Windows", "a moment's race",
                                         "limit on one allocation"));
  for (const OomDiagnosis& hip :
       {explain(sentences("HIP", "2.00 MiB", "287.98 GiB", "203.49 GiB", "", "68.63 GiB", "14.93 GiB")),
        explain(sentences("HIP", "124.00 MiB", "19.94 GiB", "554.47 MiB", "", "15.87 GiB", "165.29 MiB"))}) {
    EXPECT_EQ(hip.cause, OomCause::undetermined);
    EXPECT_EQ(possible(hip).at(0), "ROCm and unified memory");
    EXPECT_THAT(possible(hip), testing::Contains("limit on one allocation"));
    EXPECT_THAT(possible(hip), testing::Contains("a moment's race"));
  }
}

// 1 GiB of 24 is wider than 0.01, though 0.55 lies within; a printed limit needs no inference.
TEST(RefusedWithRoom, AWideIntervalIsNoFraction) {
  EXPECT_EQ(
      explain(sentences("CUDA", "1.00 GiB", "23.69 GiB", "9.00 GiB", "", "12.50 GiB", "100.00 MiB")).cause,
      OomCause::undetermined);
  EXPECT_EQ(
      explain(
          "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total capacity; 5.50 GiB already "
          "allocated; 15.00 GiB free; 6.00 GiB allowed; 5.60 GiB reserved in total by PyTorch)")
          .cause,
      OomCause::fraction_limit);
}

// torch-xpu-ops 5046 and intel-extension-for-pytorch 846: nothing is reserved, so there is no fraction.
TEST(RefusedWithRoom, OfXpuIsALimitOnOneAllocation) {
  const OomDiagnosis with_free =
      explain(sentences("XPU", "16.00 GiB", "16.48 GiB", "16.07 GiB", "", "0 bytes", "0 bytes"));
  const OomDiagnosis without = explain(
      "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of "
      "15.11 GiB. "
      "Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
      "unallocated. "
      "Please use `empty_cache` to release all unoccupied cached memory.");
  for (const OomDiagnosis& d : {with_free, without}) {
    EXPECT_EQ(d.cause, OomCause::undetermined);
    EXPECT_EQ(possible(d).at(0), "limit on one allocation");
    EXPECT_EQ(possible(d).at(1), "the driver");
    EXPECT_THAT(d.verdict, Not(HasSubstr("cut off")));
  }
  EXPECT_FALSE(without.others);
}

// XPU prints no free memory: live and asked alone exceed the card.
TEST(WithoutFreeMemory, TheSumsTellWhatTheyCan) {
  const auto xpu = [](const char* allocated, const char* idle) {
    return explain(
        "XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 15.11 GiB. Of the "
        "allocated memory " +
        std::string{allocated} + " is allocated by PyTorch, and " + idle +
        " is reserved by PyTorch but unallocated.");
  };
  EXPECT_EQ(xpu("13.00 GiB", "100.00 MiB").cause, OomCause::too_big);
  EXPECT_EQ(xpu("9.00 GiB", "4.00 GiB").cause, OomCause::fragmentation);
}

// pytorch 96814: 7.43 + 24.46 + 0.126 = 32.02 > 32.00.
TEST(Mps, TheHighWatermarkIsTheLimit) {
  const OomDiagnosis d = explain(
      "RuntimeError: MPS backend out of memory (MPS allocated: 7.43 GB, other allocations: 24.46 GB, max "
      "allowed: 32.00 "
      "GB). Tried to allocate 129.21 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable "
      "upper "
      "limit for memory allocations (may cause system failure).");
  EXPECT_EQ(d.layout, "torch-mps");
  EXPECT_EQ(d.cause, OomCause::fraction_limit);
  EXPECT_THAT(d.verdict, HasSubstr("24.46 GiB outside its cache"));
  EXPECT_NEAR(static_cast<double>(*d.others), 24.46 * (1 << 30), 6e6);
}

// The NPU of Ascend, in its own words (vllm-ascend 19): outside are 30 GiB that the message shares out to
// nobody.
TEST(Npu, IsReadInParentheses) {
  const OomDiagnosis d = explain(
      "RuntimeError: NPU out of memory. Tried to allocate 22.00 MiB (NPU 0; 60.97 GiB total capacity; 10.24 "
      "GiB already "
      "allocated; 10.24 GiB current active; 19.52 MiB free; 10.65 GiB reserved in total by PyTorch) If "
      "reserved memory "
      "is >> allocated memory try setting max_split_size_mb to avoid fragmentation.");
  EXPECT_EQ(d.layout, "torch-reserved");
  EXPECT_EQ(shown(d, "allocated"), 10'995'116'278u);
  EXPECT_EQ(d.cause, OomCause::other_processes);
  EXPECT_THAT(d.verdict, HasSubstr("estimated"));
}

// On Windows the driver moves memory to the computer's: more is live than the card has.
TEST(Paging, IsSaidAndNotCalledInconsistent) {
  const OomDiagnosis d =
      explain(sentences("CUDA", "20.00 MiB", "8.00 GiB", "0 bytes", "", "14.59 GiB", "300.00 MiB"));
  EXPECT_TRUE(d.paging);
  EXPECT_EQ(d.cause, OomCause::too_big);
  EXPECT_THAT(d.notes.at(0), HasSubstr("Paging"));
}

// pytorch 110194: 79.35 - 54.14 - 0.027 = 25.18 GiB are neither live nor free.
TEST(DriverPool, ThatIsFragmentedIsACause) {
  const OomDiagnosis d = explain(
      "torch.cuda.OutOfMemoryError: Allocation on device 5 would exceed allowed memory. (out of memory)\n"
      "Currently allocated     : 54.14 GiB\nRequested               : 686.41 MiB\nDevice limit            : "
      "79.35 GiB\n"
      "Free (according to CUDA): 27.19 MiB\nPyTorch limit (set by user-supplied memory fraction)\n"
      "                        : 17179869184.00 GiB\n");
  EXPECT_EQ(d.cause, OomCause::driver_pool);
  EXPECT_THAT(d.verdict, HasSubstr("25.18 GiB"));
  EXPECT_THAT(d.commands.at(0), HasSubstr("backend:native"));
}

TEST(MemoryOutsidePyTorch, OfThisProcessIsACause) {
  const OomDiagnosis d = explain(sentences(
      "CUDA", "1.00 GiB", "79.15 GiB", "500.00 MiB",
      "Including non-PyTorch memory, this process has 78.66 GiB memory in use. ", "60.00 GiB", "100.00 MiB"));
  EXPECT_EQ(d.cause, OomCause::outside_pytorch);
  EXPECT_THAT(d.verdict, HasSubstr("18.56 GiB outside PyTorch"));
}

// 1.2 GiB outside may be a context: no verdict rests on it, and nobody is told to end processes.
TEST(AssumedContext, DecidesNothing) {
  const OomDiagnosis d =
      explain(sentences("CUDA", "512.00 MiB", "15.78 GiB", "300.00 MiB", "", "14.20 GiB", "20.00 MiB"));
  EXPECT_EQ(d.cause, OomCause::undetermined);
  EXPECT_THAT(possible(d), ElementsAre("too big at any setting", "other processes"));
  const auto ending = std::find_if(d.advice.begin(), d.advice.end(), [](const OomAdvice& advice) {
    return advice.measure == "ending other processes on the card";
  });
  ASSERT_NE(ending, d.advice.end());
  EXPECT_EQ(ending->helps, OomAdvice::Helps::perhaps);
}

// 1,548 MiB outside, of which 771 were measured as a context: with 300 free and 200 idle the 777 others would
// do for 1,100, and without the idle ones they would not.
TEST(AssumedContext, IdleMemoryCountsBesideWhatMayBeOthers) {
  const OomDiagnosis d =
      explain(sentences("CUDA", "1100.00 MiB", "16.00 GiB", "300.00 MiB", "", "14.00 GiB", "200.00 MiB"));
  EXPECT_EQ(d.cause, OomCause::undetermined);
  EXPECT_THAT(possible(d), ElementsAre("too big at any setting", "other processes"));
}

TEST(OomSizes, WithoutTheCardOrTheRequestThereAreNone) {
  const PrintedSize gib{.bytes = 1_GiB, .low = 1_GiB, .high = 1_GiB, .text = "1.00 GiB"};
  OomMessage message = parse_oom_message(
      sentences("CUDA", "512.00 MiB", "8.00 GiB", "100.00 MiB", "", "6.00 GiB", "20.00 MiB"));
  EXPECT_TRUE(oom_sizes(message));
  message.total.reset();
  EXPECT_FALSE(oom_sizes(message));
  message.total = gib;
  message.tried.reset();
  EXPECT_FALSE(oom_sizes(message));
}

// algorithmic-efficiency 182: asked and free are both printed as 6.05 GiB.
TEST(Shortfall, BelowThePrintedRoundingIsNotZero) {
  const OomDiagnosis d = explain(
      "RuntimeError: CUDA out of memory. Tried to allocate 6.05 GiB (GPU 7; 15.78 GiB total capacity; 1.54 "
      "GiB already "
      "allocated; 6.05 GiB free; 8.28 GiB reserved in total by PyTorch)");
  EXPECT_EQ(d.cause, OomCause::fragmentation);
  EXPECT_FALSE(d.short_by);
  EXPECT_EQ(d.short_by_at_most, 10'737'420);  // 0.01 GiB
  for (const std::string& line : d.key_figures) EXPECT_THAT(line, Not(HasSubstr("short by 0 bytes")));
  EXPECT_THAT(d.key_figures.at(0), HasSubstr("less than the printed rounding"));
}

// With nothing live all that is idle is in one piece or can be made so.
TEST(IdleBlock, IsAllThereIsWhereNothingLives) {
  const std::string message =
      sentences("CUDA", "512.00 MiB", "8.00 GiB", "100.00 MiB", "", "0 bytes", "4.00 GiB");
  EXPECT_EQ(explain(message).cause, OomCause::idle_block);
}

// Counters of the same moment: 4 idle pieces of 3 GiB together, so that one has 768 MiB or more.
TEST(IdleBlock, ThatIsLargeEnoughIsACaseOfItsOwn) {
  const std::string message =
      sentences("CUDA", "512.00 MiB", "23.69 GiB", "100.00 MiB", "", "19.00 GiB", "4.00 GiB");
  EXPECT_EQ(explain(message).cause, OomCause::fragmentation);
  EXPECT_EQ(
      explain(message + "\n{'allocated_bytes.all.current': 20401094656, 'inactive_split.all.current': 4, "
                        "'inactive_split_bytes.all.current': 3221225472}")
          .cause,
      OomCause::idle_block);
}

TEST(Settings, ThatWereInForceAreNotAdvisedAgain) {
  const std::string message =
      sentences("CUDA", "158.00 MiB", "23.69 GiB", "115.69 MiB",
                "Process 21422 has 23.57 GiB memory in use. ", "22.14 GiB", "910.35 MiB");
  const OomDiagnosis d = explain(
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py\nPyTorch version: 2.3.1\n" + message);
  // With expandable segments a split limit only keeps large ranges from smaller requests (R2.5).
  EXPECT_TRUE(d.commands.empty());
  const OomDiagnosis windows = explain("  File \"C:\\Users\\me\\train.py\", line 3\n" + message);
  EXPECT_THAT(windows.commands, ElementsAre("set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"));
}

// What the listed processes leave unaccounted for is not this process's: 15.69 - 0.10 - 13.70 = 1.89 GiB.
TEST(Processes, ThatAreNotListedHoldWhatIsMissingInTheSums) {
  const OomDiagnosis d = explain(sentences(
      "CUDA", "404.00 MiB", "15.69 GiB", "102.00 MiB",
      "Including non-PyTorch memory, this process has 13.70 GiB memory in use. ", "13.20 GiB", "10.00 MiB"));
  EXPECT_EQ(d.cause, OomCause::other_processes);
  EXPECT_NEAR(static_cast<double>(d.others.value_or(0)) / static_cast<double>(1_GiB), 1.89, 0.02);
}

// 2.88 GiB idle and 374.94 MiB free are enough for 2.81 GiB; so are neighbours, if the 4.32 GiB outside are
// theirs.
TEST(Causes, NeighboursThatAreOnlyEstimatedDoNotDecideWhereIdleMemoryWouldDo) {
  const OomDiagnosis d = explain(
      "RuntimeError: CUDA out of memory. Tried to allocate 2.81 GiB (GPU 0; 23.69 GiB total capacity; 16.12 "
      "GiB "
      "already allocated; 374.94 MiB free; 19.00 GiB reserved in total by PyTorch)");
  EXPECT_EQ(d.cause, OomCause::undetermined);
  EXPECT_THAT(possible(d), ElementsAre("fragmentation", "other processes"));
}

// Both listed processes could hold the 38.43 GiB reserved here.
TEST(Processes, OfWhichTwoCouldBeThisOneAreSaidToBeTakenForIt) {
  const OomDiagnosis d = explain(
      sentences("CUDA", "508.00 MiB", "79.25 GiB", "120.75 MiB",
                "Process 4056783 has 39.60 GiB memory in use. Process 4058123 has 39.50 GiB memory in use. ",
                "38.32 GiB", "112.33 MiB"));
  EXPECT_EQ(d.own_pid, 4058123U);
  EXPECT_THAT(d.notes, Contains(HasSubstr("Process 4058123 is taken for this one")));
}

// The driver's pool has no limit, and says 0.
TEST(Pools, WithoutALimitExceedNothing) {
  const OomDiagnosis d = explain(
      "gpu_cudamallocasync_allocator.cc:361] gpu_async_1 cuMemAllocAsync failed to allocate 4294967296 "
      "bytes: "
      "RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\nStats: Limit: 0\nInUse: 1982909300\n");
  EXPECT_EQ(d.cause, OomCause::undetermined);
}

// A line on something else takes nothing from the error beside it.
TEST(WordsAlone, BesideWordsOfServicesCount) {
  EXPECT_EQ(explain("disk quota: 90 %\nRuntimeError: CUDA error: out of memory\n").layout, "driver");
  EXPECT_EQ(explain("except MemoryError:\n  pass\nRuntimeError: CUDA error: out of memory\n").layout,
            "driver");
}

// Services, other languages and code speak of memory, too, and nothing ran out.
TEST(WordsAlone, OfServicesAndCodeAreNoMessage) {
  for (const char* text :
       {"google.api_core.exceptions: 429 RESOURCE_EXHAUSTED. Quota exceeded for requests per minute",
        "grpc: RESOURCE_EXHAUSTED: Received message larger than max (5000000 vs. 4194304)",
        "Exception in thread main java.lang.OutOfMemoryError: Java heap space",
        "    if \"out of memory\" in str(e):"}) {
    const OomLog log = read_oom_log(text);
    EXPECT_TRUE(log.failures.empty() && log.counters.empty()) << text;
  }
}

// Words are matched whole; what they mean is said.
TEST(WordsAlone, TellWhatRanOut) {
  const auto layout = [](const char* text) { return explain(text).layout; };
  EXPECT_EQ(layout("torch.cuda.OutOfMemoryError: CUDA out of memory."), "driver");
  EXPECT_EQ(
      layout("RuntimeError: HIP error: out of memory\nHIP kernel errors might be asynchronously reported"),
      "driver");
  EXPECT_EQ(layout("MemoryError"), "host-memory");
  EXPECT_EQ(
      layout("RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"),
      "driver");
  EXPECT_EQ(layout("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
            "driver");
  EXPECT_EQ(layout("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasGemmEx( handle)`"),
            "other-cuda-error");
  EXPECT_EQ(layout("RuntimeError: Invalid buffer size: 8.21 GB"), "driver");
  // pytorch 123834: raised inside the report.
  const OomDiagnosis nvml = explain(
      "RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "
      "\"/opt/c10/cuda/CUDACachingAllocator.cpp\":830, please "
      "report a bug to PyTorch.");
  EXPECT_EQ(nvml.cause, OomCause::undetermined);
  EXPECT_THAT(nvml.verdict, HasSubstr("device memory ran out"));
  EXPECT_THAT(nvml.notes.at(0), HasSubstr("MIG, Jetson, containers"));
}

// Each names what it needs, or who refused.
TEST(WordsAlone, OfOtherLibrariesAreKnown) {
  const auto cause = [](const char* text) { return possible(explain(text)).at(0); };
  EXPECT_EQ(cause("RuntimeError: Invalid buffer size: 8.21 GB"), "limit on one allocation");
  EXPECT_EQ(cause("Current platform can NOT allocate memory block with size larger than 4GB! Tried to "
                  "allocate 8.00 GiB "
                  "(GPU 0; 15.59 GiB total capacity)"),
            "limit on one allocation");
  EXPECT_EQ(cause("  in pin_memory\nRuntimeError: CUDA error: out of memory"), "the computer's memory");
  EXPECT_EQ(explain("MemoryError: std::bad_alloc: out_of_memory: CUDA error at: cuda_memory_resource.hpp:62")
                .layout,
            "driver");
  EXPECT_EQ(
      shown(
          explain(
              "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 3,206,250,496 bytes (allocated so "
              "far: 12,345 bytes)."),
          "tried"),
      3'206'250'496u);
  EXPECT_EQ(
      explain(
          "InternalError: Failed copying input tensor from CPU:0 to GPU:0 in order to run _EagerConst: Dst "
          "tensor is not initialized.")
          .layout,
      "resource-exhausted");
  EXPECT_EQ(
      explain(
          "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory "
          "space hbm. Used 20.05G of 15.48G hbm. Exceeded hbm capacity by 4.57G.")
          .cause,
      OomCause::too_big);
}

// The driver of Windows reports -1 for what a process holds.
TEST(Paging, UnknownSizesOfProcessesAreSaidToBe) {
  const OomDiagnosis d =
      explain(sentences("CUDA", "20.00 MiB", "8.00 GiB", "0 bytes",
                        "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. ",
                        "7.10 GiB", "90.00 MiB"));
  EXPECT_EQ(d.cause, OomCause::fragmentation);
  EXPECT_THAT(d.notes.at(0), HasSubstr("-1"));
}

// ai-models-graphcast 18; tensorflow 52086 and 64764.
TEST(OtherFrameworks, HaveAdviceOfTheirOwn) {
  const OomDiagnosis jax = explain(
      "  File \"/home/user/jax/_src/traceback_util.py\", line 179\njaxlib.xla_extension.XlaRuntimeError: "
      "RESOURCE_EXHAUSTED: Failed to allocate request for 2.99GiB (3206250496B) on device ordinal 0");
  EXPECT_EQ(shown(jax, "tried"), 3'206'250'496u);
  EXPECT_THAT(jax.verdict, HasSubstr("JAX"));
  const OomDiagnosis tensorflow = explain(
      "W tensorflow/core/common_runtime/bfc_allocator.cc:462] Allocator (GPU_0_bfc) ran out of memory trying "
      "to allocate "
      "4.90GiB (rounded to 5259396608)requested by op _EagerConst\nCurrent allocation summary follows.");
  EXPECT_EQ(shown(tensorflow, "tried"), 5'259'396'608u);
  EXPECT_THAT(tensorflow.verdict, HasSubstr("TensorFlow"));
  for (const OomDiagnosis& d : {jax, tensorflow}) {
    EXPECT_EQ(d.cause, OomCause::undetermined);
    for (const OomAdvice& advice : d.advice) EXPECT_THAT(advice.measure, Not(HasSubstr("torch")));
  }
  const OomDiagnosis host = explain(
      "E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:1629] failed to alloc 2147483648 bytes "
      "on host: "
      "CUDA_ERROR_OUT_OF_MEMORY: out of memory\nW device_host_allocator.h:51] could not allocate pinned host "
      "memory of "
      "size: 2147483648");
  EXPECT_EQ(host.layout, "host-memory");
  EXPECT_EQ(shown(host, "tried"), 2_GiB);
  EXPECT_EQ(host.cause, OomCause::not_memory);
}

// The pool's figures: tensorflow 3304 (Limit 503270604, InUse 503061248), with a request of 4 MB.
TEST(OtherFrameworks, ThePoolTellsWhy) {
  const std::string stats = "\nStats: \nLimit:                   503270604\nInUse:                   ";
  const std::string tensorflow =
      "bfc_allocator.cc:692] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
      "4.02MiB (rounded to 4219136)" +
      stats;
  EXPECT_EQ(explain(tensorflow + "503061248").cause, OomCause::too_big);
  EXPECT_EQ(explain(tensorflow + "503061248").short_by, 4219136 - (503270604 - 503061248));
  EXPECT_EQ(explain(tensorflow + "403061248").cause, OomCause::fragmentation);
  EXPECT_EQ(
      explain(
          "bfc_allocator.cc:219] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.14GiB. The "
          "caller "
          "indicates that this is not a failure, but may mean that there could be performance gains if more "
          "memory were available.")
          .layout,
      "not-a-failure");
  EXPECT_EQ(
      shown(explain(
                "ResourceExhaustedError: OOM when allocating tensor with shape[256,1024,3] and type float on "
                "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"),
            "tried"),
      256u * 1024 * 3 * 4);
}

// MinkowskiEngine 359.
TEST(PastedCounters, OfMemoryStatsAreRead) {
  const OomDiagnosis d = explain(
      "OrderedDict([('active_bytes.all.current', 1185385472), ('allocated_bytes.all.current', 1185385472), "
      "('allocated_bytes.all.peak', 15763564032), ('inactive_split_bytes.all.current', 7514112), "
      "('num_alloc_retries', "
      "31), ('num_ooms', 1), ('reserved_bytes.all.current', 1218445312), ('reserved_bytes.all.peak', "
      "15890120704)])");
  EXPECT_EQ(d.layout, "memory_stats");
  EXPECT_EQ(shown(d, "allocated"), 1'185'385'472u);
  EXPECT_EQ(shown(d, "reserved"), 1'218'445'312u);
  EXPECT_THAT(d.verdict, HasSubstr("failed allocations: 1, retries: 31"));
  EXPECT_EQ(possible(d).at(0), "too big at any setting");  // 14.68 of 14.80 GiB
}

// 18 GiB of idle memory lie in segments without a live tensor: given back before a request fails, so no
// holes.
TEST(PastedCounters, WhatCanBeGivenBackIsNoFragmentation) {
  const std::string head =
      "{'allocated_bytes.all.current': 4000000000, 'reserved_bytes.all.current': 23000000000, 'num_ooms': 1, "
      "'inactive_split_bytes.all.current': ";
  EXPECT_EQ(explain(head + "140000000}").cause, OomCause::undetermined);
  EXPECT_EQ(explain(head + "14000000000}").cause, OomCause::fragmentation);
}

// algorithmic-efficiency 425 and fairseq 2442, whose table is cut off and stands below a message.
TEST(PastedCounters, OfMemorySummaryAreRead) {
  const std::string head =
      "|===========================================================================|\n"
      "|                  PyTorch CUDA memory summary, device ID 0                 |\n"
      "|            CUDA OOMs: 0            |        cudaMalloc retries: 1         |\n"
      "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
      "| Allocated memory      |  10344 MiB |  14441 MiB |  45674 MiB |  35330 MiB |\n"
      "|       from large pool |  10338 MiB |  14435 MiB |  45632 MiB |  35294 MiB |\n"
      "| Active memory         |  10344 MiB |  14441 MiB |  45674 MiB |  35330 MiB |\n";
  const std::string reserved =
      "| GPU reserved memory   |  14576 MiB |  14576 MiB |  14576 MiB |      0 B   |\n";
  const OomDiagnosis d = explain(head + reserved);
  EXPECT_EQ(d.layout, "memory_summary");
  EXPECT_EQ(shown(d, "allocated"), 10344_MiB);
  EXPECT_EQ(shown(d, "active"), 10344_MiB);
  EXPECT_EQ(shown(d, "reserved"), 14576_MiB);
  EXPECT_THAT(d.verdict, HasSubstr("failed allocations: 0, retries: 1"));
  const OomLog log = read_oom_log(
      "OOM: CUDA out of memory. Tried to allocate 246.00 MiB (GPU 0; 31.75 GiB total capacity; 26.00 GiB "
      "already "
      "allocated; 460.38 MiB free; 27.88 GiB reserved in total by PyTorch)\n" +
      head);
  ASSERT_THAT(log.failures, SizeIs(1));
  ASSERT_THAT(log.counters, SizeIs(1));
  EXPECT_EQ(log.counters[0].find("allocated_bytes.all.peak")->bytes, 14441_MiB);
  EXPECT_EQ(log.counters[0].find("num_alloc_retries")->bytes, 1u);
}

}  // namespace
}  // namespace vramlab
