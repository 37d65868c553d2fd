// What each profile does when a step fails for lack of memory.
#include <gmock/gmock.h>

#include "policies/tuners/dual_optimizer_moves.hpp"
#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

OptionMap flag(const std::string& key) { return {{key, true, {}}}; }

TEST(DualOptimizerRecovery, BlindAndPeakHalveBothOnce) {
  for (const char* profile : {"blind", "peak"}) {
    Rig rig("dual-optimizer", profile, with_frequency(10), {8, 152});
    const StepDecision decision = rig.oom();
    EXPECT_EQ(rig.point(), (Point{4, 76})) << profile;
    EXPECT_FALSE(decision.empty_cache);
    EXPECT_FALSE(decision.reset_peak);
    EXPECT_FALSE(decision.retry);
    EXPECT_FALSE(decision.end_run);
    EXPECT_THAT(decision.reason, StartsWith("oom at (8, 152)"));
    rig.oom();
    rig.oom();
    EXPECT_EQ(rig.point(), (Point{2, 32})) << profile;  // not below the minimum
  }
}

TEST(DualOptimizerRecovery, NothingIsLookedAtForTwoPeriods) {
  Rig blind("dual-optimizer", "blind", with_frequency(10), {8, 152});
  blind.oom();
  EXPECT_EQ(blind.steps(20, 0.9, 0.005).reason, "");
  EXPECT_TRUE(blind.step(0.9, 0.005).moved);  // as in the recorded run: OOM at 299, next change at 320

  Rig settled("dual-optimizer", "settled", with_frequency(10), {8, 152});
  settled.oom();
  EXPECT_EQ(settled.steps(20, 0.4).reason, "");
  EXPECT_TRUE(settled.step(0.4).moved);
}

TEST(DualOptimizerRecovery, AFurtherOomRestartsTheWait) {
  Rig rig("dual-optimizer", "settled", with_frequency(10), {16, 152});
  rig.oom();
  rig.steps(15, 0.4);
  rig.oom();
  EXPECT_EQ(rig.steps(20, 0.4).reason, "");
  EXPECT_NE(rig.step(0.4).reason, "");
}

TEST(DualOptimizerRecovery, TheFirstOomMayEndTheRunAsPublished) {
  Rig rig("dual-optimizer", "blind", flag("oom_ends_run"), {8, 152});
  const StepDecision decision = rig.oom();
  EXPECT_TRUE(decision.end_run);
  EXPECT_FALSE(decision.moved);
  EXPECT_THAT(decision.reason, HasSubstr("ends with its first OOM"));
  EXPECT_TRUE(rig.session().ended());
}

// The caller halves, the handler halves again: the run goes on at a half, the tuner believes a quarter.
TEST(DualOptimizerRecovery, DoubleHalvingMakesTheTunerGoOnFromAQuarter) {
  Rig rig("dual-optimizer", "peak", with_frequency(1, flag("oom_double_halving")), {16, 200});
  rig.oom();
  EXPECT_EQ(rig.point(), (Point{8, 100}));
  EXPECT_EQ(rig.statistic("current_batch_size"), 4);
  EXPECT_EQ(rig.statistic("current_lq_size"), 50);
  rig.steps(2, 0.6);
  EXPECT_EQ(rig.point(), (Point{8, 100}));
  rig.step(0.6);  // room 0.25: five pixels, from the tuner's own figures
  EXPECT_EQ(rig.point(), (Point{4, 55}));
  EXPECT_EQ(rig.statistic("current_lq_size"), 55);
}

TEST(DualOptimizerRecovery, SettledScalesBothIfItDoesNotKnowWhatMovedLast) {
  Rig rig("dual-optimizer", "settled", {}, {12, 150});
  const StepDecision decision = rig.oom();
  EXPECT_EQ(rig.point(), (Point{9, 112}));  // 112.5, down to a multiple of 4
  EXPECT_TRUE(decision.empty_cache);
  EXPECT_TRUE(decision.reset_peak);
  EXPECT_FALSE(decision.retry);
  EXPECT_THAT(decision.reason, HasSubstr("batch and lq times 0.75"));
}

TEST(DualOptimizerRecovery, SettledScalesTheParameterThatMovedLast) {
  const DualOptimizerOptions options;
  const PairBounds bounds{{2, 32}, {64, 256}};
  PairMemory memory;
  memory.note_change({8, 96}, {8, 100});
  EXPECT_EQ(memory.recover(options, bounds, {8, 100}).target, (BatchAndLq{8, 72}));  // 75 to a multiple of 4
  memory.note_change({10, 256}, {12, 256});
  EXPECT_EQ(memory.recover(options, bounds, {12, 256}).target, (BatchAndLq{9, 256}));
  // A parameter at its minimum cannot help, so the other one gives way.
  EXPECT_EQ(memory.recover(options, bounds, {2, 256}).target, (BatchAndLq{2, 192}));
  memory.note_change({8, 34}, {8, 32});
  EXPECT_EQ(memory.recover(options, bounds, {8, 32}).target, (BatchAndLq{6, 32}));
}

TEST(DualOptimizerRecovery, SettledGoesBackToTheLastSafePair) {
  Rig rig("dual-optimizer", "settled", with_frequency(10), {8, 96});
  rig.steps(10, 0.5);  // a look that does not ask to shrink: (8, 96) is safe
  ASSERT_EQ(rig.point(), (Point{8, 100}));
  const StepDecision decision = rig.oom();
  EXPECT_EQ(rig.point(), (Point{8, 96}));
  EXPECT_THAT(decision.reason, HasSubstr("back to the last safe pair"));
  // At the safe pair itself only a smaller one is left: lq, which moved last, × 0.75.
  rig.oom();
  EXPECT_EQ(rig.point(), (Point{8, 72}));
}

TEST(DualOptimizerRecovery, APairThatAskedToShrinkIsNotSafe) {
  Rig rig("dual-optimizer", "settled", with_frequency(1), {8, 96});
  rig.step(0.95);
  ASSERT_EQ(rig.point(), (Point{6, 96}));
  rig.session().set_point({12, 120});
  rig.oom();
  EXPECT_EQ(rig.point(), (Point{9, 120}));  // not (8, 96): batch, which moved last, × 0.75
}

TEST(DualOptimizerRecovery, SettledDoesNotGrowIntoWhatFailed) {
  Rig rig("dual-optimizer", "settled", with_frequency(1), {8, 96});
  rig.step(0.5);
  ASSERT_EQ(rig.point(), (Point{8, 100}));
  rig.oom();
  rig.steps(100, 0.5);
  EXPECT_EQ(rig.point(), (Point{8, 98}));  // two below 100, for good
}

TEST(DualOptimizerRecovery, TheFailedStepMayBeRunAgainAtOnce) {
  Rig rig("dual-optimizer", "settled", flag("retry_batch"), {12, 150});
  EXPECT_TRUE(rig.oom().retry);
  EXPECT_FALSE(rig.step(0.5).retry);
}

// metaseq #304: every batch fails, at the minimum too.
TEST(DualOptimizerRecovery, FailuresAtTheFloorEndTheRun) {
  Rig rig("dual-optimizer", "settled", {{"oom_floor_limit", std::int64_t{3}, {}}}, {2, 32});
  EXPECT_FALSE(rig.oom().end_run);
  EXPECT_FALSE(rig.oom().end_run);
  rig.step(0.5);  // a step that works starts the count anew
  EXPECT_FALSE(rig.oom().end_run);
  EXPECT_FALSE(rig.oom().end_run);
  const StepDecision last = rig.oom();
  EXPECT_TRUE(last.end_run);
  EXPECT_THAT(last.reason, HasSubstr("3 steps in a row have failed"));
}

TEST(DualOptimizerRecovery, RecoveriesAreLimited) {
  Rig rig("dual-optimizer", "peak", {{"max_adjustments", std::int64_t{2}, {}}}, {64, 256});
  rig.oom();
  EXPECT_FALSE(rig.oom().end_run);
  const StepDecision third = rig.oom();
  EXPECT_TRUE(third.end_run);
  EXPECT_THAT(third.reason, HasSubstr("all 2 recoveries are used up"));
}

TEST(DualOptimizerRecovery, GranularityHoldsAfterAnOomToo) {
  for (const char* profile : {"blind", "peak", "settled"}) {
    Rig rig("dual-optimizer", profile, {{"lq_granularity", std::int64_t{32}, {}}}, {8, 224});
    rig.oom();
    EXPECT_EQ(rig.point()[1] % 32, 0) << profile;
    EXPECT_LT(rig.point()[1], 224) << profile;
  }
}

TEST(DualOptimizerRecovery, AStartBelowTheBoundsDoesNotGrowBecauseOfAnOom) {
  for (const char* profile : {"blind", "peak", "settled"}) {
    Rig rig("dual-optimizer", profile, {}, {1, 16});
    rig.oom();
    EXPECT_EQ(rig.point(), (Point{1, 16})) << profile;
  }
}

TEST(DualOptimizerRecovery, AWorkloadWithBatchOnlyHalvesIt) {
  Rig rig("dual-optimizer", "peak", {}, {9}, batch_only());
  rig.oom();
  EXPECT_EQ(rig.point(), (Point{4}));
}

// As published an outlier's pair is out of reach for good; by default it is gone back to when the cooldown of
// 20 steps is over, because 40 steps had run well there.
TEST(DualOptimizerRecovery, SettledGoesBackAfterAnOutlier) {
  for (const bool returns : {true, false}) {
    const OptionMap more = returns ? OptionMap{} : OptionMap{{"return_after_periods", 0, {}}};
    Rig rig{"dual-optimizer", "settled", with_frequency(10, more), {8, 96}};
    rig.steps(60, 0.85);
    EXPECT_TRUE(rig.oom().moved);
    EXPECT_NE(rig.point(), (Point{8, 96}));
    rig.steps(21, 0.85);
    EXPECT_EQ(rig.point() == (Point{8, 96}), returns);
  }
}

TEST(DualOptimizerRecovery, OnlySettledHearsOfPhases) {
  for (const char* profile : {"blind", "peak", "settled"}) {
    Rig rig{"dual-optimizer", profile, with_frequency(10), {8, 96}};
    rig.steps(5, 0.5);
    const Point before = rig.point();
    PhaseReport report{.name = "validation", .ran = {32, 96}, .follow = {4, 0}, .result = StepResult::oom};
    const Observation observation{.iteration = 5,
                                  .memory = {.allocated = 30'000, .reserved = 900'000, .total = kRigTotal}};
    // 0.5 at batch 8 is 2.0 at 32: 0.85 / 2.0 of the batch is left, so that the next one fits.
    const bool hears = std::string{profile} == "settled";
    EXPECT_EQ(rig.session().on_phase(report, observation).moved, hears) << profile;
    EXPECT_EQ(rig.point(), hears ? (Point{3, 96}) : before) << profile;
    report.begins = true;
    EXPECT_EQ(rig.session().on_phase(report, observation).empty_cache, hears) << profile;
  }
}

// 0.25 at batch 8 is 0.5 at 16, which is the target: that fits in an empty cache, and training stays.
TEST(DualOptimizerRecovery, APhaseThatComesToTheTargetGetsAnEmptyCacheFirst) {
  for (const auto& [usage, moves] : {std::pair{0.25, false}, {0.2500005, true}}) {
    Rig rig{"dual-optimizer", "settled", with_frequency(10, {{"target_vram_usage", 0.5, {}}}), {8, 96}};
    rig.steps(5, usage);
    const PhaseReport report{
        .name = "validation", .ran = {16, 96}, .follow = {2, 0}, .result = StepResult::oom};
    const Observation observation{.iteration = 5,
                                  .memory = {.allocated = 30'000, .reserved = 900'000, .total = kRigTotal}};
    EXPECT_EQ(rig.session().on_phase(report, observation).moved, moves) << usage;
  }
}

}  // namespace
}  // namespace vramlab
