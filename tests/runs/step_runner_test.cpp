#include "sim/runs/step_runner.hpp"

#include <random>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/linear.hpp"

namespace vramlab {
namespace {

// A workload whose sizes hit every path of the allocator: small and large pool, splits, tails, growth.
class JaggedWorkload : public WorkloadModel {
 public:
  const ParameterSpace& parameters() const override { return space_; }
  StepProgram build() const override {
    return {
        .ops = {{MemoryOpKind::allocate, 0, 3_MiB}}, .persistent_slots = kPersistent, .slots = kPersistent};
  }
  StepProgram step(const Point& point) const override {
    std::mt19937_64 random{static_cast<std::uint64_t>(point[0])};
    StepProgram program{.ops = {{MemoryOpKind::ensure, 1, 5_MiB + 100}, {MemoryOpKind::free, 2, 0}},
                        .persistent_slots = kPersistent,
                        .slots = kPersistent,
                        .duration = SimTime{1'000'000}};
    for (int i = 0; i < 60; ++i) {
      const Bytes size =
          (random() % 3 == 0 ? 200_KiB : 30_MiB) * static_cast<Bytes>(point[0]) / 4 + random() % 999 + 1;
      program.ops.push_back(
          {i == 40 ? MemoryOpKind::workspace : MemoryOpKind::allocate, program.slots++, size});
      if (random() % 2 == 0) program.ops.push_back({MemoryOpKind::free, program.slots - 1, 0});
    }
    program.ops.push_back({MemoryOpKind::allocate, 2, 700_KiB});
    for (std::uint32_t slot = kPersistent; slot < program.slots; ++slot) {
      program.ops.push_back({MemoryOpKind::free, slot, 0});
    }
    return program;
  }
  std::int64_t samples(const Point& point) const override { return point[0]; }
  std::int64_t pixels(const Point& point) const override { return point[0]; }

 private:
  static constexpr std::uint32_t kPersistent = 3;
  ParameterSpace space_{{{"batch", 1, 40}}};
};

ProcessSetup setup_with(bool cache) {
  ProcessSetup setup{.card_total = 8_GiB, .context_bytes = 512_MiB, .allocator = {}, .use_step_cache = cache};
  setup.allocator.limit = 4_GiB;
  return setup;
}

void expect_equal(const StepOutcome& a, const StepOutcome& b) {
  EXPECT_EQ(a.result, b.result);
  EXPECT_EQ(a.duration, b.duration);
  EXPECT_EQ(a.peak_allocated, b.peak_allocated);
  EXPECT_EQ(a.peak_reserved, b.peak_reserved);
  ASSERT_EQ(a.oom.has_value(), b.oom.has_value());
  if (a.oom) {
    EXPECT_EQ(a.oom->reserved, b.oom->reserved);
  }
}

// Every counter and every outcome, over steps that repeat, change, fail and meet other processes.
TEST(StepRunner, TheStepCacheChangesNothing) {
  const JaggedWorkload workload;
  StepRunner full{workload, setup_with(false)};
  StepRunner cached{workload, setup_with(true)};
  std::mt19937_64 random{7};
  int failed = 0;
  for (int i = 0; i < 700; ++i) {
    const bool anywhere = random() % 5 == 0 || i >= 450;  // at last no state is met twice for long
    const Point point{static_cast<std::int64_t>(anywhere ? 1 + random() % 40 : 3 + i / 200)};
    const StepOutcome a = full.run(point);
    const StepOutcome b = cached.run(point);
    expect_equal(a, b);
    failed += a.result == StepResult::oom ? 1 : 0;
    if (i % 97 == 0) {
      EXPECT_EQ(full.empty_cache(), cached.empty_cache());
    }
    if (i % 41 == 0) {
      full.reset_peak();
      cached.reset_peak();
    }
    if (i % 150 == 0) {
      full.set_others(static_cast<Bytes>(i) * 10_MiB);
      cached.set_others(static_cast<Bytes>(i) * 10_MiB);
    }
    ASSERT_EQ(full.stats(), cached.stats()) << "after step " << i;
    ASSERT_EQ(full.view().device_free, cached.view().device_free) << "after step " << i;
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(cached.cache_hits(), 200u);
  EXPECT_EQ(full.cache_hits(), 0u);
}

// Memory of the first iterations in a report of torchcv: 9.849, 5.010, 5.016, 5.016 GB.
TEST(StepRunner, TheFirstStepsAtAShapeMayDifferOncePerShape) {
  LinearSpec spec;
  spec.per_sample = 1_GiB;
  spec.first_steps = {2.0, 0.5};
  const LinearWorkload workload{spec};
  StepRunner runner{workload, {.card_total = 80_GiB}};
  const auto peak = [&](std::int64_t batch) { return runner.run({batch}).peak_allocated; };
  EXPECT_EQ(peak(4), 8_GiB);
  EXPECT_EQ(peak(4), 2_GiB);
  EXPECT_EQ(peak(4), 4_GiB);
  EXPECT_EQ(peak(6), 12_GiB);
  EXPECT_EQ(peak(4), 4_GiB);  // known already
  EXPECT_EQ(peak(6), 3_GiB);
}

TEST(StepRunner, ReportsTheLimitAsTotalWhereOneIsSet) {
  const JaggedWorkload workload;
  ProcessSetup setup = setup_with(true);
  EXPECT_EQ((StepRunner{workload, setup}.view().total), 4_GiB);
  setup.allocator.limit.reset();
  EXPECT_EQ((StepRunner{workload, setup}.view().total), 8_GiB);
}

// What does not fit when it is asked for is taken once the allocator has given memory back.
TEST(StepRunner, OtherProcessesTakeWhatBecomesFree) {
  LinearSpec spec;
  spec.per_sample = 1_GiB;
  const LinearWorkload workload{spec};
  StepRunner runner{workload, {.card_total = 8_GiB, .context_bytes = 0}};
  EXPECT_EQ(runner.run({6}).result, StepResult::ok);
  runner.set_others(5_GiB);  // 2 GiB are free
  EXPECT_EQ(runner.run({6}).result, StepResult::ok);
  runner.empty_cache();
  EXPECT_EQ(runner.run({6}).result, StepResult::oom);
  EXPECT_EQ(runner.run({3}).result, StepResult::ok);
}

// Wanted and not granted, step after step: what steps of the cache leave is what the full ones do.
TEST(StepRunner, OthersThatWaitForMemoryGetTheSameFromRememberedSteps) {
  const JaggedWorkload workload;
  StepRunner full{workload, setup_with(false)};
  StepRunner cached{workload, setup_with(true)};
  for (int i = 0; i < 200; ++i) {
    if (i % 50 == 5) {
      full.set_others(7_GiB);
      cached.set_others(7_GiB);
    } else if (i % 50 == 30) {
      EXPECT_EQ(full.empty_cache(), cached.empty_cache());
    } else if (i % 50 == 40) {
      full.set_others(0);
      cached.set_others(0);
    }
    const Point point{3 + i % 3};
    expect_equal(full.run(point), cached.run(point));
    ASSERT_EQ(full.stats(), cached.stats()) << "after step " << i;
    ASSERT_EQ(full.view().device_free, cached.view().device_free) << "after step " << i;
  }
  EXPECT_GT(cached.cache_hits(), 50u);
}

TEST(StepRunner, RefusesACardThatCannotHoldTheWeights) {
  const JaggedWorkload workload;
  ProcessSetup setup = setup_with(true);
  setup.allocator.limit = 1_MiB;
  EXPECT_THROW((StepRunner{workload, setup}), InputError);
}

// A message about a limit would blame one that nobody set.
TEST(StepRunner, TheWholeCardIsNoLimit) {
  const LinearWorkload workload{{.fixed = 1_GiB, .per_sample = 512_MiB}};
  StepRunner runner{workload,
                    {.card_total = 8_GiB, .context_bytes = 0, .allocator = {}, .use_step_cache = false}};
  runner.use_share(1);
  EXPECT_EQ(runner.run({64}).oom.value().limit, std::nullopt);
  runner.use_share(0.5);
  EXPECT_EQ(runner.run({64}).oom.value().limit, 4_GiB);
}

}  // namespace
}  // namespace vramlab
