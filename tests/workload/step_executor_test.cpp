#include "sim/workload/step_executor.hpp"

#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/sim_segments.hpp"

namespace vramlab {
namespace {

using Kind = MemoryOpKind;

class StepExecutorTest : public testing::Test {
 protected:
  SimulatedCard card{1_GiB, 0};
  SimSegments segments{card};
  CachingAllocator allocator{segments};
  StepExecutor executor{allocator};

  Bytes allocated() const { return static_cast<Bytes>(allocator.stats().allocated_bytes.all().current); }
};

TEST_F(StepExecutorTest, PersistentSlotsOutliveTheStep) {
  const StepProgram program{
      .ops = {{Kind::allocate, 0, 32_MiB}, {Kind::allocate, 1, 64_MiB}, {Kind::free, 1, 0}},
      .persistent_slots = 1,
      .slots = 2};
  EXPECT_EQ(executor.run(program).result, StepResult::ok);
  EXPECT_EQ(allocated(), 32_MiB);
}

TEST_F(StepExecutorTest, EnsureFillsASlotOnce) {
  const StepProgram program{.ops = {{Kind::ensure, 0, 32_MiB}}, .persistent_slots = 1, .slots = 1};
  executor.run(program);
  executor.run(program);
  EXPECT_EQ(allocated(), 32_MiB);
  EXPECT_EQ(allocator.stats().allocation.all().allocated, 1);
}

TEST_F(StepExecutorTest, AFailedStepGivesItsOwnSlotsBackAndKeepsTheRest) {
  const StepProgram program{
      .ops = {{Kind::allocate, 0, 32_MiB}, {Kind::allocate, 1, 64_MiB}, {Kind::allocate, 2, 2_GiB}},
      .persistent_slots = 1,
      .slots = 3};
  const ExecutedStep step = executor.run(program);
  EXPECT_EQ(step.result, StepResult::oom);
  EXPECT_EQ(step.ops_done, 2u);
  ASSERT_TRUE(step.oom);
  EXPECT_EQ(step.oom->requested, 2_GiB);
  EXPECT_EQ(allocated(), 32_MiB);
}

// A library asks for its workspace again and again before it does without (21 refusals a chain were seen
// in recordings of a convolution network under a 4 GiB limit).
TEST_F(StepExecutorTest, AWorkspaceThatDoesNotFitIsDroppedAfterItsRefusals) {
  const StepProgram program{.ops = {{Kind::workspace, 0, 2_GiB},
                                    {Kind::free, 0, 0},
                                    {Kind::allocate, 1, 32_MiB},
                                    {Kind::free, 1, 0}},
                            .persistent_slots = 0,
                            .slots = 2,
                            .workspace_refusals = 21};
  EXPECT_EQ(executor.run(program).result, StepResult::ok);
  EXPECT_EQ(allocator.stats().num_ooms, 21);
  EXPECT_EQ(allocator.stats().num_alloc_retries, 21);
}

TEST_F(StepExecutorTest, ADroppedWorkspaceIsNotAskedForAgainAtItsShape) {
  const StepProgram program{.ops = {{Kind::workspace, 0, 2_GiB}, {Kind::free, 0, 0}},
                            .persistent_slots = 0,
                            .slots = 1,
                            .workspace_refusals = 21};
  executor.run(program, /*shape=*/1);
  executor.run(program, 1);
  EXPECT_EQ(allocator.stats().num_ooms, 21);
  executor.run(program, 2);
  EXPECT_EQ(allocator.stats().num_ooms, 42);
}

TEST_F(StepExecutorTest, AProgramThatFillsASlotTwiceIsAFault) {
  const StepProgram program{
      .ops = {{Kind::allocate, 0, 512}, {Kind::allocate, 0, 512}}, .persistent_slots = 1, .slots = 1};
  EXPECT_THROW(executor.run(program), InternalError);
}

}  // namespace
}  // namespace vramlab
