// When `dual-optimizer` looks, and on which peak it decides.
#include <algorithm>
#include <tuple>

#include <gmock/gmock.h>

#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> iterations_of(const std::vector<Adjustment>& adjustments) {
  std::vector<std::int64_t> iterations;
  for (const Adjustment& adjustment : adjustments) iterations.push_back(adjustment.iteration);
  return iterations;
}

TEST(DualOptimizerTiming, ChangesComeEveryPeriodPlusOne) {
  Rig blind("dual-optimizer", "blind", with_frequency(10), {8, 96});
  blind.steps(33, 0.4);
  EXPECT_THAT(iterations_of(blind.session().adjustments()), ElementsAre(1, 12, 23));
  for (const char* profile : {"peak", "settled"}) {
    Rig rig("dual-optimizer", profile, with_frequency(10), {8, 96});
    rig.steps(33, 0.4);
    EXPECT_THAT(iterations_of(rig.session().adjustments()), ElementsAre(10, 21, 32)) << profile;
  }
}

TEST(DualOptimizerTiming, DefaultPeriodsAreThePublishedOnes) {
  for (const auto& [profile, first, second] :
       {std::tuple{"blind", 1, 102}, std::tuple{"peak", 25, 51}, std::tuple{"settled", 25, 51}}) {
    Rig rig("dual-optimizer", profile, {}, {8, 96});
    rig.steps(120, 0.4);
    const auto iterations = iterations_of(rig.session().adjustments());
    ASSERT_GE(iterations.size(), 2u);
    EXPECT_EQ(iterations[0], first) << profile;
    EXPECT_EQ(iterations[1], second) << profile;
  }
}

// peak looks at every step while nothing changes; settled waits a period after each look.
TEST(DualOptimizerTiming, OnlySettledWaitsAfterALookWithoutChange) {
  Rig peak("dual-optimizer", "peak", with_frequency(10), {8, 96});
  EXPECT_THAT(peak.steps(10, 0.82).reason, HasSubstr("no change"));
  EXPECT_THAT(peak.step(0.82).reason, HasSubstr("no change"));

  Rig settled("dual-optimizer", "settled", with_frequency(10), {8, 96});
  const StepDecision look = settled.steps(10, 0.82);
  EXPECT_THAT(look.reason, HasSubstr("no change"));
  EXPECT_TRUE(look.reset_peak);
  EXPECT_EQ(settled.steps(10, 0.82).reason, "");
  EXPECT_THAT(settled.step(0.82).reason, HasSubstr("no change"));
}

// The peaks that the looks rest on, for a device whose counter rises until it is reset.
struct Looks {
  std::vector<std::string> peaks;
  std::vector<bool> moved;
};

Looks look_at(const std::string& profile, const std::vector<double>& true_peaks) {
  Rig rig("dual-optimizer", profile, with_frequency(1), {8, 96});
  Looks looks;
  double counter = 0;
  for (std::size_t period = 0; period < true_peaks.size(); ++period) {
    StepDecision last;
    for (int step = 0; step < (period == 0 ? 1 : 2); ++step) {
      counter = std::max(counter, true_peaks[period]);
      last = rig.step(counter);
      if (last.reset_peak) counter = 0;
    }
    looks.peaks.push_back(last.reason.substr(0, std::string("peak usage 0.60").size()));
    looks.moved.push_back(last.moved);
  }
  return looks;
}

// mmdetection #1185 and #5096: a counter that is never reset only rises or stays.
TEST(DualOptimizerTiming, APeakThatIsNeverResetNeverFalls) {
  const std::vector<double> peaks{0.60, 0.82, 0.61, 0.60, 0.60};

  const Looks kept = look_at("peak", peaks);
  EXPECT_THAT(kept.peaks, ElementsAre("peak usage 0.60", "peak usage 0.82", "peak usage 0.82",
                                      "peak usage 0.82", "peak usage 0.82"));
  EXPECT_THAT(kept.moved, ElementsAre(true, false, false, false, false));  // never grows again

  const Looks reset = look_at("settled", peaks);
  EXPECT_THAT(reset.peaks, ElementsAre("peak usage 0.60", "peak usage 0.82", "peak usage 0.61",
                                       "peak usage 0.60", "peak usage 0.60"));
  EXPECT_THAT(reset.moved, ElementsAre(true, false, true, true, true));
}

// 0.34 GB between steps, 9.32 GB at the peak, 12.48 GB in all, as published with the optimizer.
TEST(DualOptimizerTiming, ThePeakHoldsWhereTheFigureBetweenStepsWouldGrow) {
  const double allocated = 0.34 / 12.48;
  const double peak = 9.32 / 12.48;
  EXPECT_NEAR(allocated, 0.027, 0.0005);
  EXPECT_NEAR(peak, 0.747, 0.0005);

  const OptionMap at_78{{"target_vram_usage", 0.78, {}}, {"adjustment_frequency", std::int64_t{100}, {}}};
  Rig blind("dual-optimizer", "blind", at_78, {8, 96});
  EXPECT_TRUE(blind.step(peak, allocated).moved);
  Rig reads_peak("dual-optimizer", "peak", at_78, {8, 96});
  EXPECT_FALSE(reads_peak.steps(100, peak, allocated).moved);
  EXPECT_EQ(reads_peak.point(), (Point{8, 96}));

  // At 0.85 both would grow, but peak decides nothing before its first period is over.
  Rig waits("dual-optimizer", "peak", with_frequency(100), {8, 96});
  EXPECT_EQ(waits.steps(99, peak, allocated).reason, "");
  EXPECT_TRUE(waits.step(peak, allocated).moved);
}

TEST(DualOptimizerTiming, TheHighestReadingOfThePeriodDecides) {
  Rig rig("dual-optimizer", "settled", with_frequency(10), {8, 96});
  rig.step(0.95);
  const StepDecision look = rig.steps(9, 0.4);
  EXPECT_THAT(look.reason, HasSubstr("0.950 is above"));
  EXPECT_EQ(rig.point(), (Point{6, 96}));
  rig.steps(11, 0.4);
  EXPECT_EQ(rig.point(), (Point{6, 100}));  // that peak is forgotten: room 0.45, four pixels
}

TEST(DualOptimizerTiming, MaxAdjustmentsMayCountEveryChange) {
  const OptionMap two{{"max_adjustments", std::int64_t{2}, {}},
                      {"max_adjustments_counts", std::string("all"), {}},
                      {"adjustment_frequency", std::int64_t{1}, {}}};
  Rig rig("dual-optimizer", "settled", two, {8, 96});
  rig.steps(20, 0.4);
  EXPECT_EQ(rig.session().adjustments().size(), 2u);
  const StepDecision failed = rig.oom();
  EXPECT_TRUE(failed.moved);  // an OOM is always answered
  EXPECT_FALSE(failed.end_run);

  Rig recoveries("dual-optimizer", "settled", with_frequency(1, {{"max_adjustments", std::int64_t{2}, {}}}),
                 {8, 96});
  recoveries.steps(20, 0.4);
  EXPECT_EQ(recoveries.session().adjustments().size(), 10u);
}

TEST(DualOptimizerTiming, SwitchedOffItNeverMoves) {
  Rig rig("dual-optimizer", "blind", {{"enabled", false, {}}}, {8, 96});
  EXPECT_FALSE(rig.steps(300, 0.4).moved);
  const StepDecision failed = rig.oom();
  EXPECT_FALSE(failed.moved);
  EXPECT_FALSE(failed.end_run);
  EXPECT_TRUE(rig.session().adjustments().empty());
}

// nnU-Net #362: lq 100 where the network takes multiples of 32.
TEST(DualOptimizerTiming, AStartThatTheNetworkCannotTakeIsSnappedAtOnce) {
  Rig rig("dual-optimizer", "settled", with_frequency(10, {{"lq_granularity", std::int64_t{32}, {}}}),
          {8, 100});
  EXPECT_EQ(rig.step(0.3).reason, "lq 100 is not a multiple of 32: batch +0, lq -4");
  EXPECT_EQ(rig.point(), (Point{8, 96}));
  rig.steps(9, 0.3);
  EXPECT_EQ(rig.point(), (Point{8, 128}));
}

TEST(DualOptimizerTiming, SettledClimbsIntoItsCornerAndStays) {
  Rig rig("dual-optimizer", "settled", with_frequency(1), {2, 64});
  rig.steps(300, 0.623);
  EXPECT_EQ(rig.point(), (Point{2, 256}));  // a third sample would need 1.1 x 0.311 of room, there is 0.227
}

}  // namespace
}  // namespace vramlab
