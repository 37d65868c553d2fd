// The step program of a network by its layers against recordings of that network: every request in order.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fit/recorded_run.hpp"
#include "tests/models/known_networks.hpp"

namespace vramlab {
namespace {

using layers::MixedPrecision;
using layers::Number;
using layers::Optimizer;
using layers::RunSpec;

// Smaller ones are positions, masks of nothing and scalars, which differ here and there.
constexpr Bytes kSmall = 256_KiB;

struct Recorded {
  std::string recording;
  std::string config;
  RunSpec run;
  std::size_t left_out = 0;  ///< requests above kSmall that the model does not make
};

std::vector<Bytes> large_requests(const StepProgram& step) {
  std::vector<Bytes> sizes;
  for (const MemoryOp& op : step.ops) {
    if (op.kind == MemoryOpKind::allocate && op.size > kSmall) sizes.push_back(op.size);
  }
  return sizes;
}

std::vector<Bytes> large_requests(const StepRecord& step) {
  std::vector<Bytes> sizes;
  for (const StepAllocation& one : step.allocations) {
    if (one.size > kSmall) sizes.push_back(one.size);
  }
  return sizes;
}

// Highest sum of the step's own requests, those rounded to 512 bytes; gradients of the step before and what
// stays for good are not among them.
Bytes own_peak(const StepRecord& step) {
  Bytes now = 0;
  Bytes peak = 0;
  for (const StepAction& action : step.actions) {
    if (action.kind == StepAction::Kind::free_kept) continue;
    const Bytes size = round_up(step.allocations[action.what].size, 512);
    now = action.kind == StepAction::Kind::allocate ? now + size : now - size;
    peak = std::max(peak, now);
  }
  return peak;
}

Bytes own_peak(const StepProgram& step) {
  std::vector<Bytes> live(step.slots, 0);
  Bytes now = 0;
  Bytes peak = 0;
  for (const MemoryOp& op : step.ops) {
    if (op.kind == MemoryOpKind::free) {
      now -= live[op.slot];
      live[op.slot] = 0;
    } else if (op.kind == MemoryOpKind::allocate) {
      live[op.slot] = round_up(op.size, 512);
      now += live[op.slot];
      peak = std::max(peak, now);
    }
  }
  return peak;
}

class LayersRecording : public testing::TestWithParam<Recorded> {};

// Steps of the second time at each shape: the first makes optimizer state and workspaces.
TEST_P(LayersRecording, RequestsAreThoseOfTheRealStep) {
  const Recorded& known = GetParam();
  const auto run = recorded_run(known.recording);
  if (!run) GTEST_SKIP() << known.recording << " is not there (../shared/data)";
  const layers::LayersModel model = known::model_of(known.config, known.run);
  std::size_t compared = 0;
  for (std::size_t i = 1; i < run->steps.size(); ++i) {
    const StepRecord& real = run->steps[i];
    if (real.mark.parameters != run->steps[i - 1].mark.parameters) continue;
    Point point(2);
    for (const auto& [name, value] : real.mark.parameters.scalars) point[name == "batch" ? 0 : 1] = value;
    const StepProgram step = model.step(point);
    EXPECT_EQ(large_requests(step), large_requests(real))
        << known.recording << " at " << point[0] << ", " << point[1];
    EXPECT_NEAR(static_cast<double>(own_peak(step)), static_cast<double>(own_peak(real)), 16.0 * 1024)
        << known.recording << " at " << point[0] << ", " << point[1];
    ++compared;
  }
  EXPECT_GT(compared, 3u);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, LayersRecording,
    testing::Values(
        Recorded{
            "llama", known::kDecoder, {.weights = Number::bfloat16, .optimizer = Optimizer::adamw_fused}},
        Recorded{"accum",
                 known::kDecoder,
                 {.weights = Number::bfloat16,
                  .optimizer = Optimizer::adamw_fused,
                  .zero_gradients = layers::ZeroGradients::before_forward,
                  .micro_batch = 2}},
        Recorded{"llama_ckpt",
                 known::kDecoder,
                 {.weights = Number::bfloat16, .optimizer = Optimizer::adamw_fused, .recompute_every = 1}},
        Recorded{"fsdp_w2.rank0", known::kDecoder, {.autocast = MixedPrecision::bfloat16, .shards = 2}},
        Recorded{"gpt2_fit", known::kGpt2, {.autocast = MixedPrecision::bfloat16}},
        Recorded{"bert_fit", known::kBert, {}}),
    [](const auto& one) {
      std::string name = one.param.recording;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

}  // namespace
}  // namespace vramlab
