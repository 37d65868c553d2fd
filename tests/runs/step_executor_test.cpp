#include "sim/runs/step_executor.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/segments/sim_segments.hpp"

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

// What a library asks for when the workspace of its first choice is refused: its other kernels, each once
// (recording sr_limits).
class RefusedWorkspaceTest : public StepExecutorTest {
 protected:
  /// A workspace of 700 MiB, or of 300; with `before` held while it is asked for.
  static StepProgram program(Bytes before) {
    return {.ops = {{Kind::allocate, 1, before},
                    {Kind::workspace, 0, 700_MiB, 1},
                    {Kind::free, 0, 0},
                    {Kind::free, 1, 0}},
            .persistent_slots = 0,
            .slots = 2,
            .attempts = {{0, {700_MiB, 900_MiB, 700_MiB, 300_MiB, 700_MiB}}},
            .workspace_refusals = 21};
  }
  std::int64_t refused_by(Bytes before, std::uint64_t shape) {
    const std::int64_t earlier = allocator.stats().num_ooms;
    EXPECT_EQ(executor.run(program(before), shape).result, StepResult::ok);
    return allocator.stats().num_ooms - earlier;
  }
};

TEST_F(RefusedWorkspaceTest, AtANewShapeEachAttemptIsMadeOnceUntilOneIsGranted) {
  EXPECT_EQ(refused_by(600_MiB, 1), 3);
  EXPECT_EQ(allocator.stats().allocated_bytes.all().peak, std::int64_t{900_MiB});  // 600 + 300
}

TEST_F(RefusedWorkspaceTest, WithoutAnyGrantedItDoesWithout) {
  EXPECT_EQ(refused_by(800_MiB, 1), 5);
  EXPECT_EQ(allocator.stats().allocated_bytes.all().peak, std::int64_t{800_MiB});
}

// In the recording each list at a shape seen before begins with its first size twice.
TEST_F(RefusedWorkspaceTest, APlanThatWorkedBeforeIsTriedOnceMoreThanAllAttempts) {
  EXPECT_EQ(refused_by(100_MiB, 1), 0);
  EXPECT_EQ(refused_by(600_MiB, 1), 1 + 3);
  EXPECT_EQ(refused_by(600_MiB, 2), 3);  // another shape
}

TEST_F(RefusedWorkspaceTest, TheSmallerPlanIsKeptForItsShape) {
  refused_by(600_MiB, 1);
  EXPECT_EQ(refused_by(600_MiB, 1), 0);
  allocator.reset_peak_stats();
  EXPECT_EQ(refused_by(100_MiB, 1), 0);
  EXPECT_EQ(allocator.stats().allocated_bytes.all().peak, std::int64_t{400_MiB});
  EXPECT_EQ(refused_by(800_MiB, 1), 1 + 5);  // 300 MiB, then all attempts
  EXPECT_EQ(refused_by(100_MiB, 1), 0);      // from now on without
  EXPECT_EQ(refused_by(800_MiB, 1), 0);
}

// Layers of equal kind share a plan: in the recording sr_cap the 18 attempts of a dense block's convolution
// were 19, for the block before had run at that shape.
TEST_F(RefusedWorkspaceTest, AnEarlierLayerOfTheStepCountsAsAPlanThatWorked) {
  StepProgram twice = program(100_MiB);
  const StepProgram second = program(600_MiB);
  twice.ops.insert(twice.ops.end(), second.ops.begin(), second.ops.end());
  EXPECT_EQ(executor.run(twice, 1).result, StepResult::ok);
  EXPECT_EQ(allocator.stats().num_ooms, 1 + 3);
}

TEST_F(RefusedWorkspaceTest, AStepThatFailsKeepsThePlansItMade) {
  StepProgram failing = program(100_MiB);
  failing.ops.push_back({Kind::allocate, 1, 2_GiB});
  EXPECT_EQ(executor.run(failing, 1).result, StepResult::oom);
  const std::int64_t earlier = allocator.stats().num_ooms;
  EXPECT_EQ(earlier, 1);
  EXPECT_EQ(refused_by(600_MiB, 1), 1 + 3);
}

TEST_F(StepExecutorTest, AProgramThatFillsASlotTwiceIsAFault) {
  const StepProgram program{
      .ops = {{Kind::allocate, 0, 512}, {Kind::allocate, 0, 512}}, .persistent_slots = 1, .slots = 1};
  EXPECT_THROW(executor.run(program), InternalError);
}

}  // namespace
}  // namespace vramlab
