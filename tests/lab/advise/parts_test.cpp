// A step in parts of its batch, predicted from steps done whole, against a program that really did so.
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/advise/units.hpp"
#include "lab/model/file.hpp"
#include "lab/model/measured_grid.hpp"
#include "lab/model/prediction.hpp"
#include "models/accumulation.hpp"
#include "recordings/replay/program_replay.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;

MemoryOp make(std::uint32_t slot, Bytes size) { return {MemoryOpKind::allocate, slot, size}; }
MemoryOp drop(std::uint32_t slot) { return {MemoryOpKind::free, slot, 0}; }

// Slot 0 is a gradient, slot 1 optimizer state, slot 2 what forward saves, slot 3 the loss, slot 4 a
// temporary of the optimizer.
StepProgram small_step(Bytes saved) {
  StepProgram step;
  step.persistent_slots = 2;
  step.slots = 5;
  step.duration = SimTime{10};
  step.ops = {make(2, saved), make(3, 512), drop(0),
              make(0, 4_MiB), drop(2),      {MemoryOpKind::ensure, 1, 8_MiB},
              make(4, 2_MiB), drop(4),      drop(3)};
  return step;
}

TEST(PartsTest, GradientsStayAndTheOptimizerMovesOnce) {
  EXPECT_THAT(parts_of_batch(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(parts_of_batch(4, 9), ElementsAre(4));
  const std::vector<StepProgram> parts{small_step(30_MiB), small_step(20_MiB)};
  const StepProgram step = step_in_parts(parts);
  EXPECT_THAT(step.ops,
              ElementsAre(drop(0),                                                          //
                          make(2, 30_MiB), make(3, 512), make(0, 4_MiB), drop(2), drop(3),  //
                          make(2, 20_MiB), make(3, 512), make(5, 4_MiB), drop(5), drop(2),  //
                          MemoryOp{MemoryOpKind::ensure, 1, 8_MiB}, make(4, 2_MiB), drop(4), drop(3)));
  EXPECT_EQ(step.slots, 6U);
  EXPECT_EQ(step.duration, SimTime{20});
}

// tests/data/grids/llama-in-parts.json: the decoder whose steps the shipped model was fitted to, in parts
// of 2.
TEST(PartsTest, ADecoderInPartsNeedsWhatItReallyNeeded) {
  const MeasuredGrid grid = read_grid_file(VRAMLAB_SOURCE_DIR "/tests/data/grids/llama-in-parts.json");
  const std::unique_ptr<WorkloadModel> model = load_model_file(VRAMLAB_SOURCE_DIR "/models/llama.json");
  std::vector<double> allocated;
  std::vector<double> reserved;
  for (const GridRow& row : grid.rows) {
    const std::int64_t batch = row.parameters.at("batch");
    const std::int64_t seq = row.parameters.at("seq");
    if (batch == 2) continue;  // one part
    const ClientProgram program = predicted_program(*model, {batch, seq}, {}, BatchPart{0, 2});
    const ProgramOutcome outcome = replay_program(program, {});
    const auto error = [](Bytes ours, Bytes real) {
      return static_cast<double>(ours) / static_cast<double>(real) - 1;
    };
    allocated.push_back(std::abs(error(outcome.highest_allocated, row.peak_allocated)));
    reserved.push_back(std::abs(error(outcome.highest_reserved, row.peak_reserved)));
  }
  ASSERT_EQ(allocated.size(), 28U);
  std::ranges::sort(allocated);
  std::ranges::sort(reserved);
  EXPECT_LT(allocated.back(), 0.01);
  EXPECT_LT(reserved[reserved.size() / 2], 0.03);
  EXPECT_LT(reserved.back(), 0.08);
}

// Three steps of two parts, each through 12 layers; without stacks layers are told by their sizes.
TEST(PartsTest, LayersAreComputedAgainInEveryPart) {
  const std::unique_ptr<WorkloadModel> model = load_model_file(VRAMLAB_SOURCE_DIR "/models/llama.json");
  const ClientProgram whole = predicted_program(*model, {16, 1024}, {}, BatchPart{0, 8});
  const RecomputedProgram again = recomputed_program(whole, {"layer"}, {});
  EXPECT_EQ(again.calls, 3U * 2U * 12U);
  EXPECT_LT(replay_program(again.program, {}).highest_allocated,
            replay_program(whole, {}).highest_allocated * 6 / 10);
}

}  // namespace
}  // namespace vramlab
