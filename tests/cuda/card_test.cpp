// On a real card. Small sizes, so that compute-sanitizer can run them too.
#include "cuda/card.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "cuda/card_performer.hpp"
#include "cuda/job_worker.hpp"
#include "cuda/validation.hpp"
#include "models/linear.hpp"

namespace vramlab {
namespace {

bool has_card() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  static_cast<void>(cudaGetLastError());
  return found;
}

// Where the test runs on another machine than it was built, the environment says.
std::string own_program() {
  const char* given = std::getenv("VRAMLAB_PROGRAM");
  return given != nullptr ? given : VRAMLAB_PROGRAM;
}

class CardTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_card()) GTEST_SKIP() << "this machine has no CUDA card";
    card = open_card();
  }

  CardInfo card;
};

// R10.1: memory goes in pages of 2 MiB.
TEST_F(CardTest, SegmentsTakeWholePagesAndGiveThemBack) {
  CudaSegments segments;
  const Bytes free = segments.device_free();
  const auto small = segments.reserve(2_MiB);
  const auto large = segments.reserve(20_MiB);
  ASSERT_TRUE(small && large);
  EXPECT_EQ(free - segments.device_free(), 22_MiB);
  segments.release(*small);
  segments.release(*large);
  EXPECT_EQ(segments.device_free(), free);
  EXPECT_EQ(cuda_granularity(), 2_MiB);
}

TEST_F(CardTest, WhatTheCardHasNotIsAnAnswer) {
  CudaSegments segments;
  const Bytes free = segments.device_free();
  EXPECT_FALSE(segments.reserve(card.total));
  EXPECT_EQ(segments.device_free(), free);
  const auto after = segments.reserve(2_MiB);  // the failure is not remembered
  ASSERT_TRUE(after);
  segments.release(*after);
}

TEST_F(CardTest, RangesAreMappedPageByPage) {
  CudaSegments segments;
  CardMemory memory;
  memory.stream(kDefaultStream);
  const Bytes free = segments.device_free();
  const Address range = segments.reserve_range(200_MiB, 20_MiB);
  EXPECT_EQ(segments.device_free(), free);  // addresses alone cost nothing
  ASSERT_TRUE(segments.map(range, 40_MiB));
  EXPECT_EQ(free - segments.device_free(), 40_MiB);
  memory.allocated(BlockId{1}, range, 40_MiB, kDefaultStream);
  memory.freeing(BlockId{1});
  memory.require_intact();
  EXPECT_EQ(memory.checked_bytes(), 40_MiB);
  segments.unmap(range + 20_MiB, 20_MiB);
  EXPECT_EQ(free - segments.device_free(), 20_MiB);
  segments.unmap(range, 20_MiB);
  segments.release_range(range);
  EXPECT_EQ(segments.device_free(), free);
}

// R5.4: all or nothing; here the first of two pages fits.
TEST_F(CardTest, AMappingThatDoesNotFitLeavesNothing) {
  CudaSegments segments;
  const Bytes free = segments.device_free();
  const Bytes page = round_up(free / 2 + 1, 2_MiB);
  const Address range = segments.reserve_range(2 * page, page);
  EXPECT_FALSE(segments.map(range, 2 * page));
  EXPECT_EQ(segments.device_free(), free);
  segments.release_range(range);
}

TEST_F(CardTest, WhatIsNotGivenBackGoesWithTheSource) {
  const Bytes free = card_free();
  {
    CudaSegments segments;
    ASSERT_TRUE(segments.reserve(20_MiB));
    ASSERT_TRUE(segments.map(segments.reserve_range(40_MiB, 20_MiB), 20_MiB));
    EXPECT_EQ(free - card_free(), 40_MiB);
  }
  EXPECT_EQ(card_free(), free);
}

TEST_F(CardTest, OverlappingBlocksAreFound) {
  CudaSegments segments;
  const auto base = segments.reserve(2_MiB);
  ASSERT_TRUE(base);
  CardMemory memory;
  memory.allocated(BlockId{1}, *base, 1_MiB, kDefaultStream);
  memory.allocated(BlockId{2}, *base + 1_MiB - 512, 1_MiB, kDefaultStream);
  memory.freeing(BlockId{2});
  EXPECT_NO_THROW(memory.require_intact());  // the later one is whole
  memory.freeing(BlockId{1});
  EXPECT_THROW(memory.require_intact(), InternalError);
}

// R3.8: a free waits for the streams that the block was recorded for, and no longer.
TEST_F(CardTest, ADeferredFreeWaitsForTheOtherStream) {
  constexpr StreamId kSide = 7;
  CudaSegments segments;
  CachingAllocator allocator{segments};
  CardMemory memory;
  UsedAllocator used{allocator, memory};
  const auto first = used.allocate(4_MiB, kDefaultStream);
  ASSERT_TRUE(first);
  VRAMLAB_CUDA(queue_compute(memory.stream(kSide), 200'000'000));  // 0.2 s, so that it is still at work below
  used.record_stream(first->block, kSide);
  used.free(first->block);
  const auto meanwhile = used.allocate(4_MiB, kDefaultStream);
  ASSERT_TRUE(meanwhile);
  EXPECT_NE(meanwhile->address, first->address);
  VRAMLAB_CUDA(cudaDeviceSynchronize());
  const auto later = used.allocate(4_MiB, kDefaultStream);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->address, first->address);
  used.free(meanwhile->block);
  used.free(later->block);
  memory.require_intact();
  EXPECT_EQ(memory.checked_bytes(), 16_MiB);  // the first one twice: by its own stream and by the other
}

// The same loop and session; the segments, the executor, the probe and the clock are the card's.
TEST_F(CardTest, ARunOnTheCardIsTheSimulatedOne) {
  const LinearWorkload workload{{.name = "test",
                                 .fixed = 40_MiB,
                                 .per_sample = 12_MiB,
                                 .resident = 20_MiB,
                                 .batch = {"batch", 1, 64},
                                 .time = {.floor_seconds = 0.002}}};
  ProcessSetup setup;
  setup.card_total = card.total;
  setup.context_bytes = card.total - card.free + 64_MiB;  // room for what this test itself takes
  setup.allocator.limit = 400_MiB;
  const Bytes free = card_free();
  {
    CardPerformer real{{workload.build(), &workload}, setup, std::make_shared<SharedCard>()};
    StepRunner simulated{workload, setup};
    for (const std::int64_t batch : {1, 8, 30, 4, 60, 29, 2}) {  // 60 samples do not fit
      const StepOutcome on_card = real.run({batch});
      const StepOutcome pretended = simulated.run({batch});
      EXPECT_EQ(on_card.result, pretended.result) << batch;
      EXPECT_EQ(on_card.result, batch == 60 ? StepResult::oom : StepResult::ok);
      EXPECT_EQ(on_card.peak_allocated, pretended.peak_allocated);
      EXPECT_EQ(on_card.peak_reserved, pretended.peak_reserved);
      EXPECT_EQ(real.view().reserved, simulated.view().reserved);
      if (batch == 60) continue;
      EXPECT_GE(on_card.duration, SimTime{2'000'000});
      if (batch == 4) {  // no call of the driver
        EXPECT_EQ(on_card.duration, SimTime{2'000'000});
      }
    }
    real.empty_cache();
    simulated.empty_cache();
    EXPECT_EQ(real.view().reserved, simulated.view().reserved);
  }
  EXPECT_EQ(card_free(), free);  // nothing is left behind after an OOM
}

// What steps left goes, a limit moves, and given programs run, as in the simulator.
TEST_F(CardTest, ForgetsItsStepsAndTakesGivenOnesAsThePretendedCardDoes) {
  const LinearWorkload workload{{.name = "test",
                                 .fixed = 40_MiB,
                                 .per_sample = 12_MiB,
                                 .resident = 20_MiB,
                                 .state = 60_MiB,
                                 .batch = {"batch", 1, 64}}};
  ProcessSetup setup{.card_total = card.total, .context_bytes = card.total - card.free + 64_MiB};
  setup.allocator.limit = 400_MiB;
  setup.use_step_cache = false;
  setup.keep_failed = true;
  const ProcessWork work{workload.build(), nullptr};
  CardPerformer real{work, setup, std::make_shared<SharedCard>(0)};
  StepRunner simulated{work, setup};
  const auto expect_alike = [&](const char* when) {
    EXPECT_EQ(real.view().allocated, simulated.view().allocated) << when;
    EXPECT_EQ(real.view().reserved, simulated.view().reserved) << when;
    EXPECT_EQ(real.available(), simulated.available()) << when;
  };
  for (const std::int64_t batch : {4, 20, 60, 20}) {  // the third leaves what it had got
    for (StepPerformer* one : {static_cast<StepPerformer*>(&real), static_cast<StepPerformer*>(&simulated)}) {
      const StepOutcome step =
          one->run_program(workload.step({batch}), 1, {.besides = 10_MiB, .left = 2_MiB});
      EXPECT_EQ(step.result, batch == 60 ? StepResult::oom : StepResult::ok) << batch;
      if (batch == 60) one->forget_steps(false);
    }
    expect_alike("after a step");
  }
  for (StepPerformer* one : {static_cast<StepPerformer*>(&real), static_cast<StepPerformer*>(&simulated)}) {
    one->forget_steps(false);
    one->use_share(0.5);
    EXPECT_EQ(one->run_program(workload.step({20}), 1, {}).result, StepResult::oom);
    one->use_share(1);
  }
  expect_alike("at the end");
}

// Each finds the card as if it were alone on it, however the other fills its own.
TEST_F(CardTest, PerformersOfOneProgramTakeTurns) {
  const LinearWorkload workload{
      {.name = "test", .fixed = 40_MiB, .per_sample = 12_MiB, .resident = 20_MiB, .batch = {"batch", 1, 64}}};
  ProcessSetup setup{.card_total = 600_MiB, .context_bytes = 100_MiB};  // 500 MiB for either
  const Bytes free = card_free();
  {
    const auto shared = std::make_shared<SharedCard>(0);
    CardPerformer first{{workload.build(), &workload}, setup, shared};
    CardPerformer second{{workload.build(), &workload}, setup, shared};
    for (CardPerformer* one : {&first, &second, &first}) {
      EXPECT_EQ(one->run({30}).result, StepResult::ok);  // 400 MiB
      EXPECT_EQ(one->run({40}).result, StepResult::oom);
      const MemoryView view = one->view();
      EXPECT_LE(view.device_free.value() + view.reserved, 502_MiB);
      EXPECT_GE(view.device_free.value() + view.reserved, 500_MiB);
    }
  }
  EXPECT_EQ(card_free(), free);
}

// One process a job: its context, its memory and its OOM are real, and gone with it.
TEST_F(CardTest, JobsHaveProcessesOfTheirOwn) {
  const LinearWorkload workload{{.name = "test",
                                 .fixed = 40_MiB,
                                 .per_sample = 12_MiB,
                                 .resident = 20_MiB,
                                 .batch = {"batch", 1, 128}}};
  const Bytes free = card_free();
  {
    CardOfJobs jobs{3_GiB, 500_MiB, std::make_shared<SharedCard>(),
                    [] { return std::make_unique<ChildProcess>(own_program(), kJobVerb, "a job"); }};
    EXPECT_EQ(card_free() / 2_MiB, 3_GiB / 2_MiB);
    const auto one = jobs.start({});
    const auto other = jobs.start({});
    ASSERT_TRUE(one->open() && other->open());  // 2,072 MiB are left
    EXPECT_TRUE(one->run(workload.build(), 0, 0).ok);
    EXPECT_TRUE(one->run(workload.step({100}), 1, 1).ok);  // 1,240 MiB
    EXPECT_GE(one->holding().reserved, 500_MiB + 1240_MiB);
    EXPECT_TRUE(other->run(workload.build(), 0, 0).ok);
    const JobOnCard::Step refused = other->run(workload.step({100}), 1, 1);
    EXPECT_FALSE(refused.ok);
    EXPECT_GT(refused.refused, 0u);
    EXPECT_TRUE(other->run(workload.step({60}), 2, 2).ok);  // 760 of the 812 MiB that it got and keeps cached
    EXPECT_FALSE(other->run(workload.step({70}), 3, 3).ok);
  }
  EXPECT_EQ(card_free(), free);
}

// What such a job reads of memory, and obeys: as on a pretended card.
TEST_F(CardTest, AJobReadsItsMemoryAsOnAPretendedCard) {
  const LinearWorkload workload{{.name = "test",
                                 .fixed = 40_MiB,
                                 .per_sample = 12_MiB,
                                 .resident = 20_MiB,
                                 .batch = {"batch", 1, 128}}};
  CardOfJobs jobs{3_GiB, 500_MiB, std::make_shared<SharedCard>(),
                  [] { return std::make_unique<ChildProcess>(own_program(), kJobVerb, "a job"); }};
  PretendedCard pretended{3_GiB, 500_MiB};
  const auto real = jobs.start({});
  const auto simulated = pretended.start({});
  const auto expect_alike = [&](const char* when) {
    const MemoryView there = simulated->view();
    const MemoryView here = real->view();
    EXPECT_EQ(here.allocated, there.allocated) << when;
    EXPECT_EQ(here.peak_allocated, there.peak_allocated) << when;
    EXPECT_EQ(here.reserved, there.reserved) << when;
    EXPECT_EQ(here.peak_reserved, there.peak_reserved) << when;
    EXPECT_EQ(here.total, there.total) << when;
    EXPECT_EQ(here.allocator_ooms, there.allocator_ooms) << when;
    EXPECT_EQ(*here.device_free / 2_MiB, *there.device_free / 2_MiB) << when;
  };
  for (JobOnCard* one : {real.get(), simulated.get()}) {
    ASSERT_TRUE(one->open());
    EXPECT_TRUE(one->run(workload.build(), 0, 0).ok);
    EXPECT_TRUE(one->run(workload.step({100}), 0, 1).ok);
  }
  expect_alike("after a step");
  for (JobOnCard* one : {real.get(), simulated.get()}) one->reset_peak();
  expect_alike("with a new peak");
  EXPECT_EQ(real->empty_cache(), simulated->empty_cache());
  expect_alike("with an empty cache");
  const JobOnCard::Step here = real->run(workload.step({128}), 0, 2);
  const JobOnCard::Step there = simulated->run(workload.step({128}), 0, 2);
  EXPECT_EQ(here.ok, there.ok);
  EXPECT_EQ(here.driver_time, there.driver_time);
  expect_alike("after a large step");
}

// Each process, each ballast and each holder is on the card that it is for.
TEST_F(CardTest, SeveralCardsAreUsedEachForItself) {
  if (visible_cards() < 2) GTEST_SKIP() << "this machine has one card";
  const LinearWorkload workload{
      {.name = "test", .fixed = 40_MiB, .per_sample = 12_MiB, .resident = 20_MiB, .batch = {"batch", 1, 64}}};
  const ProcessSetup setup{.card_total = 600_MiB, .context_bytes = 100_MiB};  // 500 MiB on either
  for (const int device : {0, 1}) {  // the first step loads kernels, which the driver keeps
    CardPerformer step{{workload.build(), &workload}, setup, std::make_shared<SharedCard>(0, device)};
    EXPECT_EQ(step.run({1}).result, StepResult::ok);
  }
  use_card(1);
  const Bytes free_of_second = card_free();
  use_card(0);
  const Bytes free_of_first = card_free();
  {
    const auto first = std::make_shared<SharedCard>(0, 0);
    const auto second = std::make_shared<SharedCard>(0, 1);
    CardPerformer one{{workload.build(), &workload}, setup, first};
    CardPerformer other{{workload.build(), &workload}, setup, second};
    for (CardPerformer* performer : {&one, &other, &one}) {
      EXPECT_EQ(performer->run({30}).result, StepResult::ok);
      EXPECT_EQ(performer->run({40}).result, StepResult::oom);
    }
    for (const int device : {0, 1}) {  // what neither took of its 500 MiB; the rest of the card is held
      use_card(device);
      EXPECT_LE(card_free(), 500_MiB) << device;
    }
  }
  {
    CardOfJobs jobs{3_GiB, 500_MiB, std::make_shared<SharedCard>(0, 1),
                    [] { return std::make_unique<ChildProcess>(own_program(), kJobVerb, "a job", 1); }};
    const auto job = jobs.start({});
    ASSERT_TRUE(job->open());
    EXPECT_TRUE(job->run(workload.build(), 0, 0).ok);
    use_card(0);
    EXPECT_EQ(card_free(), free_of_first);
  }
  use_card(1);
  EXPECT_EQ(card_free(), free_of_second);
  use_card(0);
  EXPECT_EQ(card_free(), free_of_first);
}

TEST_F(CardTest, ASecondProcessHoldsMemoryAndGivesItBack) {
  const Bytes free = card_free();
  {
    MemoryHolder holder{0, own_program()};
    const Bytes before = card_free();
    EXPECT_LT(before, free);  // its context
    EXPECT_EQ(holder.hold(64_MiB), 64_MiB);
    EXPECT_EQ(before - card_free(), 64_MiB);
    EXPECT_EQ(holder.hold(10_MiB), 10_MiB);
    const Bytes wanted = before - 100_MiB;
    holder.leave_free(wanted);
    EXPECT_LE(card_free(), wanted);
    EXPECT_GT(card_free() + 2_MiB, wanted);
  }
  EXPECT_EQ(card_free(), free);
}

TEST_F(CardTest, AProgramRunsAlikeOnBothSides) {
  ClientProgram program;
  using Kind = ClientAction::Kind;
  const Bytes sizes[] = {300_KiB, 3_MiB, 12_MiB, 700_KiB, 25_MiB, 1_MiB, 9_MiB};
  for (std::uint32_t i = 0; i < 60; ++i) {
    program.actions.push_back({.bytes = sizes[i % 7], .block = i, .kind = Kind::alloc});
    if (i % 3 == 2) program.actions.push_back({.block = i - 1, .kind = Kind::free});
    if (i % 17 == 16) program.actions.push_back({.kind = Kind::empty_cache});
  }
  program.blocks = 60;
  for (const char* conf : {"", "expandable_segments:True"}) {
    ReplaySetup setup;
    setup.settings = parse_allocator_settings(conf);
    setup.limit = 200_MiB;
    const CardReplay replay = replay_on_card(program, setup);
    EXPECT_TRUE(replay.given.exact()) << conf;
    EXPECT_GT(replay.given.ooms, 0u) << conf;
    EXPECT_EQ(replay.given.equal_addresses, replay.given.allocations) << conf;
    EXPECT_EQ(replay.free_at_end, card_free());
  }
}

}  // namespace
}  // namespace vramlab
