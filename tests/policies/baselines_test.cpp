// `fixed`, `threshold-step`, `aimd` and `skeleton`.
#include <gmock/gmock.h>

#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

OptionMap step_of(std::int64_t step) { return with_frequency(10, {{"step", step, {}}}); }

// A workload whose peak is 0.10 + 0.081 × batch of the device; batches after each of `periods` periods.
std::vector<std::int64_t> batches_over(Rig& rig, int periods) {
  std::vector<std::int64_t> batches;
  for (int period = 0; period < periods; ++period) {
    for (int step = 0; step < 10; ++step) rig.step(0.10 + 0.081 * static_cast<double>(rig.point()[0]));
    batches.push_back(rig.point()[0]);
  }
  return batches;
}

TEST(Fixed, NeverMoves) {
  Rig rig("fixed", "", {}, {8, 96});
  EXPECT_FALSE(rig.steps(100, 0.1).moved);
  EXPECT_FALSE(rig.oom().moved);
  EXPECT_EQ(rig.point(), (Point{8, 96}));
}

// Batch 8 takes 0.748, below 0.80; batch 10 takes 0.910, above 0.90; batch 9 would be inside.
TEST(ThresholdStep, FlipsForEverWithStepsWiderThanTheBand) {
  Rig rig("threshold-step", "", step_of(2), {8}, batch_only());
  EXPECT_THAT(batches_over(rig, 6), ElementsAre(10, 8, 10, 8, 10, 8));
}

TEST(ThresholdStep, SettlesWithSmallerSteps) {
  Rig rig("threshold-step", "", step_of(1), {8}, batch_only());
  EXPECT_THAT(batches_over(rig, 4), ElementsAre(9, 9, 9, 9));
  EXPECT_EQ(rig.session().adjustments().at(0).iteration, 10);
}

// Batch 9 takes 0.829, below 0.85; batch 10 takes 0.910.
TEST(Skeleton, GrowsUntilAPeriodReachesItsBound) {
  Rig rig("skeleton", "", with_frequency(10), {8}, batch_only());
  EXPECT_THAT(batches_over(rig, 4), ElementsAre(9, 10, 10, 10));
}

TEST(Skeleton, StepsBackAtOnceAfterAFailedStep) {
  Rig rig("skeleton", "", with_frequency(10), {8}, batch_only());
  rig.steps(3, 0.5);
  const StepDecision decision = rig.oom();
  EXPECT_EQ(decision.reason, "oom: a step of the period failed: batch -1");
  EXPECT_TRUE(decision.reset_peak);
  EXPECT_EQ(rig.point(), (Point{7}));
  EXPECT_THAT(batches_over(rig, 1), ElementsAre(8));  // a new period began with the failed step
}

TEST(ThresholdStep, LooksAtThePeakOfThePeriodAndResetsIt) {
  Rig rig("threshold-step", "", step_of(2), {8, 96});
  rig.step(0.95);
  const StepDecision look = rig.steps(9, 0.5);
  EXPECT_TRUE(look.reset_peak);
  EXPECT_EQ(look.reason, "period peak 0.950 is above the band 0.800 to 0.900: batch -2");
  rig.steps(10, 0.85);
  EXPECT_EQ(rig.point(), (Point{6, 96}));
}

TEST(ThresholdStep, AFailedStepCountsAsAboveTheBand) {
  Rig rig("threshold-step", "", step_of(2), {8, 96});
  EXPECT_FALSE(rig.oom(0.5).moved);
  EXPECT_TRUE(rig.steps(9, 0.5).moved);
  EXPECT_EQ(rig.point(), (Point{6, 96}));
  EXPECT_THAT(rig.session().adjustments().at(0).reason, StartsWith("oom"));
}

TEST(Aimd, AddsOneAPeriodUntilPressureAndHalvesOnOom) {
  Rig rig("aimd", "", with_frequency(10), {9, 96});
  rig.steps(20, 0.5);
  EXPECT_EQ(rig.point(), (Point{11, 96}));
  EXPECT_FALSE(rig.steps(10, 0.9).moved);  // pressure from 0.90 on
  rig.steps(4, 0.5);
  const StepDecision failed = rig.oom();
  EXPECT_TRUE(failed.moved);
  EXPECT_EQ(rig.point(), (Point{5, 96}));
  EXPECT_THAT(failed.reason, StartsWith("oom at batch 11"));
  EXPECT_FALSE(rig.steps(9, 0.5).moved);  // the failed step began a new period
  EXPECT_TRUE(rig.step(0.5).moved);
}

TEST(Aimd, AFlushedCacheIsPressure) {
  Rig rig("aimd", "", with_frequency(2), {9, 96});
  rig.step(0.5, 0.03, 1);
  EXPECT_EQ(rig.step(0.5, 0.03, 3).reason, "3 allocations of the period flushed the cache: no change");
  rig.step(0.5, 0.03, 3);
  EXPECT_TRUE(rig.step(0.5, 0.03, 3).moved);
  Rig deaf("aimd", "", with_frequency(2, {{"retries_are_pressure", false, {}}}), {9, 96});
  deaf.step(0.5, 0.03, 1);
  EXPECT_TRUE(deaf.step(0.5, 0.03, 3).moved);
}

TEST(Aimd, StopsAtTheSmallestValue) {
  Rig rig("aimd", "", {}, {1, 96});
  EXPECT_FALSE(rig.oom().moved);
  EXPECT_EQ(rig.point(), (Point{1, 96}));
  Rig high("aimd", "", {}, {5}, {{{"batch", 4, 64}}});
  EXPECT_EQ(high.oom().reason, "oom at batch 5: batch -1");
}

}  // namespace
}  // namespace vramlab
