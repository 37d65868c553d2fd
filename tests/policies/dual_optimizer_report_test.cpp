// Statistics and log lines of `dual-optimizer`.
#include <gmock/gmock.h>

#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(DualOptimizerReport, StatisticsHaveThePublishedNames) {
  const auto tuner = builtin_policies()->tuners.make({"dual-optimizer", "", {}, ""}, batch_and_lq());
  std::vector<std::string> names;
  for (const Statistic& statistic : tuner->statistics()) names.push_back(statistic.name);
  EXPECT_THAT(names,
              ElementsAre("peak_usage", "avg_usage", "current_usage", "target_usage", "safety_margin",
                          "current_batch_size", "current_lq_size", "oom_recovery_count", "adjustments"));
}

TEST(DualOptimizerReport, StatisticsFollowTheRun) {
  Rig rig("dual-optimizer", "settled", with_frequency(3, {{"vram_history_size", std::int64_t{2}, {}}}),
          {8, 96});
  rig.step(0.75, 0.125);
  rig.step(0.25, 0.125);
  rig.step(0.5, 0.0625);  // a look at 0.75: two pixels of lq
  EXPECT_EQ(rig.statistic("peak_usage"), 0.75);
  EXPECT_EQ(rig.statistic("avg_usage"), 0.375);  // of the last two readings
  EXPECT_EQ(rig.statistic("current_usage"), 0.0625);
  EXPECT_EQ(rig.statistic("target_usage"), 0.85);
  EXPECT_EQ(rig.statistic("safety_margin"), 0.05);
  EXPECT_EQ(rig.statistic("current_batch_size"), 8);
  EXPECT_EQ(rig.statistic("current_lq_size"), 98);
  EXPECT_EQ(rig.statistic("adjustments"), 1);
  rig.oom();
  EXPECT_EQ(rig.statistic("oom_recovery_count"), 1);
  EXPECT_EQ(rig.statistic("adjustments"), 2);  // those after an OOM are adjustments too
  EXPECT_EQ(rig.session().adjustments().size(), 2u);
  EXPECT_EQ(rig.statistic("current_lq_size"), 96);  // back at the safe pair
}

TEST(DualOptimizerReport, TellsTheStartAndTheInitialisationPhase) {
  Rig rig("dual-optimizer", "peak", {}, {8, 96});
  EXPECT_THAT(rig.step(0.5).log,
              ElementsAre("monitoring started: initial peak 0.500 (488.3 KiB), a look every 25 iterations",
                          "initialisation phase: no adjustments before iteration 25"));
  EXPECT_THAT(rig.step(0.5).log, IsEmpty());
}

TEST(DualOptimizerReport, TellsUsageEveryFiftyIterations) {
  Rig rig("dual-optimizer", "peak", with_frequency(200), {8, 96});
  EXPECT_THAT(rig.steps(49, 0.747).log, IsEmpty());
  EXPECT_THAT(rig.step(0.747).log,
              ElementsAre("usage now 0.030 (29.3 KiB), peak 0.747 (729.5 KiB), target 0.850 (830.1 KiB)"));
}

TEST(DualOptimizerReport, TellsEveryDecisionAndTheEndOfAPeriod) {
  Rig rig("dual-optimizer", "peak", with_frequency(10), {12, 128});
  EXPECT_THAT(
      rig.steps(10, 0.933).log,
      ElementsAre(
          "decision at 0.933: batch -2, lq +0, because peak usage 0.933 is above 0.900: batch -2, lq +0",
          "period complete at iteration 10; the next look is 11 iterations away"));
}

TEST(DualOptimizerReport, ReasonsNameTheirFigures) {
  Rig inside("dual-optimizer", "settled", with_frequency(1), {8, 96});
  EXPECT_EQ(inside.step(0.82).reason, "peak usage 0.820 lies within 0.800 to 0.900: no change");
  Rig blind("dual-optimizer", "blind", {}, {8, 96});
  EXPECT_EQ(blind.step(0.5).reason, "usage 0.030 is below 0.800: batch +0, lq +2");
  Rig floor("dual-optimizer", "peak", with_frequency(1), {2, 32});
  EXPECT_EQ(floor.step(0.95).reason, "peak usage 0.950 is above 0.900: both are at their minimum, no change");
  Rig top("dual-optimizer", "settled", with_frequency(1), {2, 256});
  EXPECT_EQ(top.step(0.623).reason, "peak usage 0.623 is below 0.800: no step fits, no change");
}

TEST(DualOptimizerReport, BlindWritesNoLinesButWarns) {
  Rig rig("dual-optimizer", "blind", {}, {8, 96});
  EXPECT_THAT(rig.step(0.97, 0.1).log, IsEmpty());
  EXPECT_THAT(rig.step(0.97, 0.95).log, IsEmpty());  // strictly above
  EXPECT_THAT(rig.step(0.97, 0.96).log,
              ElementsAre("warning: 0.960 (937.5 KiB) is allocated after a step, above 0.950"));
}

TEST(DualOptimizerReport, RecoveriesAreLoggedToo) {
  Rig rig("dual-optimizer", "settled", with_frequency(10), {12, 150});
  rig.step(0.5);
  EXPECT_THAT(rig.oom().log,
              ElementsAre("oom at (12, 150): batch and lq times 0.75 gives (9, 112); no look for "
                          "20 iterations"));
}

}  // namespace
}  // namespace vramlab
