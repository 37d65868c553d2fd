// The sizes of the steps of each profile, at their edges. Targets and usages are binary fractions, so that
// the room between them is exact.
#include <gmock/gmock.h>

#include "policies/tuners/dual_optimizer_moves.hpp"
#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

constexpr PairBounds kBounds{{2, 32}, {64, 256}};

DualOptimizerOptions profile(const std::string& name, double target, double margin = 0,
                             const OptionMap& more = {}) {
  const OptionMap options = overlay(more, {{"target_vram_usage", target, {}}, {"safety_margin", margin, {}}});
  return parse_dual_optimizer(builtin_policies()->tuners.options({"dual-optimizer", name, options, {}}));
}

std::int64_t lq_change(const DualOptimizerOptions& options, double usage, BatchAndLq now = {8, 96},
                       const std::vector<BatchAndLq>& failing = {}) {
  const BatchAndLq next = next_pair(options, kBounds, failing, now, usage);
  EXPECT_EQ(next.batch, now.batch);
  return next.lq - now.lq;
}

std::int64_t batch_change(const DualOptimizerOptions& options, double usage, BatchAndLq now = {10, 256},
                          const std::vector<BatchAndLq>& failing = {}) {
  const BatchAndLq next = next_pair(options, kBounds, failing, now, usage);
  EXPECT_EQ(next.lq, now.lq);
  return next.batch - now.batch;
}

// blind: room > 0.05: min(2, int(room / 0.05))
TEST(DualOptimizerSteps, BlindGrowsLqByAtMostTwo) {
  const auto options = profile("blind", 0.5);
  EXPECT_EQ(lq_change(options, 0.453125), 0);  // room 0.046875
  EXPECT_EQ(lq_change(options, 0.4375), 1);    // room 0.0625
  EXPECT_EQ(lq_change(options, 0.375), 2);     // room 0.125
  EXPECT_EQ(lq_change(options, 0), 2);
}

// peak: room > 0.02: min(8, max(2, int(room / 0.05)))
TEST(DualOptimizerSteps, PeakGrowsLqByTwoToEight) {
  const auto options = profile("peak", 0.5);
  EXPECT_EQ(lq_change(options, 0.484375), 0);  // room 0.015625
  EXPECT_EQ(lq_change(options, 0.46875), 2);   // room 0.03125
  EXPECT_EQ(lq_change(options, 0.25), 5);      // room 0.25: exactly five units
  EXPECT_EQ(lq_change(options, 0), 8);
  EXPECT_EQ(lq_change(options, 0, {8, 255}), 1);  // capped at the maximum
}

// settled: room > 0.05: min(4, max(2, 2 int(room / 0.10)))
TEST(DualOptimizerSteps, SettledGrowsLqByTwoOrFour) {
  const auto options = profile("settled", 0.5);
  EXPECT_EQ(lq_change(options, 0.453125), 0);
  EXPECT_EQ(lq_change(options, 0.4375), 2);
  EXPECT_EQ(lq_change(options, 0.3125), 2);   // room 0.1875: one unit
  EXPECT_EQ(lq_change(options, 0.28125), 4);  // room 0.21875: two units
  EXPECT_EQ(lq_change(options, 0), 4);
}

TEST(DualOptimizerSteps, SettledStaysTwoBelowAFailingLq) {
  const auto options = profile("settled", 0.5);
  const std::vector<BatchAndLq> failing{{8, 100}};
  EXPECT_EQ(lq_change(options, 0, {8, 94}, failing), 4);
  EXPECT_EQ(lq_change(options, 0, {8, 96}, failing), 2);
  EXPECT_EQ(lq_change(options, 0, {8, 98}, failing), 0);
  EXPECT_EQ(lq_change(options, 0, {9, 96}, failing), 2);  // failed at a smaller batch: counts
  EXPECT_EQ(lq_change(options, 0, {7, 98}, failing), 4);  // failed at a larger one: says nothing
  EXPECT_EQ(lq_change(profile("peak", 0.5), 0, {8, 98}, failing), 8);
}

// blind: room > 0.03: min(2, int(room / 0.1)), which may be 0
TEST(DualOptimizerSteps, BlindGrowsBatchOnlyWithATenthOfRoom) {
  const auto options = profile("blind", 0.5);
  EXPECT_EQ(batch_change(options, 0.4375), 0);
  EXPECT_EQ(batch_change(options, 0.375), 1);
  EXPECT_EQ(batch_change(options, 0.25), 2);
  EXPECT_EQ(batch_change(options, 0), 2);
}

// peak: room > 0.01: min(8, max(2, int(room / 0.03)))
TEST(DualOptimizerSteps, PeakGrowsBatchByTwoToEight) {
  const auto options = profile("peak", 0.5);
  EXPECT_EQ(batch_change(options, 0.4921875), 0);  // room 0.0078125
  EXPECT_EQ(batch_change(options, 0.484375), 2);
  EXPECT_EQ(batch_change(options, 0.375), 4);  // room 0.125
  EXPECT_EQ(batch_change(options, 0), 8);
  EXPECT_EQ(batch_change(options, 0, {63, 256}), 1);  // capped at the maximum
}

// settled: room > 0.05: min(2, int(room / (1.1 usage / batch)))
TEST(DualOptimizerSteps, SettledGrowsBatchByTheShareOfASample) {
  EXPECT_EQ(batch_change(profile("settled", 0.546875), 0.5), 0);         // room 0.046875
  EXPECT_EQ(batch_change(profile("settled", 0.5625), 0.5), 1);           // 0.0625 / 0.055
  EXPECT_EQ(batch_change(profile("settled", 0.8125), 0.5), 2);           // 0.3125 / 0.055
  EXPECT_EQ(batch_change(profile("settled", 0.625), 0.5, {4, 256}), 0);  // 0.125 / 0.1375
  EXPECT_EQ(batch_change(profile("settled", 0.5), 0), 2);                // nothing in use: no division by 0
}

TEST(DualOptimizerSteps, SettledNeverReachesAFailingBatch) {
  const std::vector<BatchAndLq> failing{{12, 256}};
  EXPECT_EQ(batch_change(profile("settled", 0.8125), 0.5, {10, 256}, failing), 0);  // would reach 12
  EXPECT_EQ(batch_change(profile("settled", 0.5625), 0.5, {10, 256}, failing), 1);
  EXPECT_EQ(batch_change(profile("settled", 0.8125), 0.5, {10, 256}, {{12, 300}}), 2);  // a larger lq failed
}

TEST(DualOptimizerSteps, BatchShrinksFirst) {
  const auto blind = profile("blind", 0.5, 0.0625);
  EXPECT_EQ(batch_change(blind, 0.5625, {10, 128}), 0);     // on the edge: still inside
  EXPECT_EQ(batch_change(blind, 0.578125, {10, 128}), -1);  // 0.078 over the target
  EXPECT_EQ(batch_change(blind, 0.625, {10, 128}), -2);     // 0.125 over
  for (const char* name : {"peak", "settled"}) {
    const auto options = profile(name, 0.5, 0.0625);
    EXPECT_EQ(batch_change(options, 0.578125, {10, 128}), -2) << name;
    EXPECT_EQ(batch_change(options, 0.625, {10, 128}), -4) << name;
    EXPECT_EQ(batch_change(options, 0.625, {3, 128}), -1) << name;  // not below the minimum
  }
}

TEST(DualOptimizerSteps, LqShrinksOnlyAtTheSmallestBatch) {
  EXPECT_EQ(lq_change(profile("blind", 0.5, 0.0625), 0.75, {2, 128}), -1);
  for (const char* name : {"peak", "settled"}) {
    const auto options = profile(name, 0.5, 0.0625);
    EXPECT_EQ(lq_change(options, 0.640625, {2, 128}), -2) << name;  // 0.140625 over: not far for lq
    EXPECT_EQ(lq_change(options, 0.671875, {2, 128}), -4) << name;  // 0.171875 over
    EXPECT_EQ(lq_change(options, 0.75, {2, 33}), -1) << name;
    EXPECT_EQ(lq_change(options, 0.75, {2, 32}), 0) << name;
    const auto eighth = profile(name, 0.5, 0.0625, {{"lq_far", 0.125, {}}});
    EXPECT_EQ(lq_change(eighth, 0.625, {2, 128}), -2) << name;  // on the edge: far is above it
    EXPECT_EQ(lq_change(eighth, 0.640625, {2, 128}), -4) << name;
  }
}

// peak has no band to hold in; it grows right from target - margin down, settled too, both hold between.
TEST(DualOptimizerSteps, TheBandBelongsToHolding) {
  const auto options = profile("settled", 0.5, 0.125);
  EXPECT_EQ(wish_for(options, 0.375), Wish::hold);
  EXPECT_EQ(wish_for(options, 0.3749), Wish::grow);
  EXPECT_EQ(wish_for(options, 0.625), Wish::hold);
  EXPECT_EQ(wish_for(options, 0.6251), Wish::shrink);
}

TEST(DualOptimizerSteps, AWorkloadWithoutLqMovesItsBatchOnly) {
  const auto options = profile("peak", 0.5);
  const PairView view(options, batch_only());
  EXPECT_EQ(view.of({8}), (BatchAndLq{8, 0}));
  EXPECT_EQ(next_pair(options, view.bounds(), {}, {8, 0}, 0.375), (BatchAndLq{12, 0}));
  EXPECT_EQ(view.delta({8}, {12, 0}), (Point{4}));
  EXPECT_EQ(next_pair(options, view.bounds(), {}, {2, 0}, 0.9), (BatchAndLq{2, 0}));
}

TEST(DualOptimizerSteps, BoundsAreThoseOfTheOptionsWithinThoseOfTheWorkload) {
  const auto options =
      profile("settled", 0.85, 0.05,
              {{"lq_granularity", std::int64_t{16}, {}}, {"min_lq_size", std::int64_t{33}, {}}});
  const PairView view(options, {{{"lq", 8, 200}, {"batch", 4, 500}}});
  EXPECT_EQ(view.bounds().low, (BatchAndLq{4, 48}));     // 33 up to a multiple of 16
  EXPECT_EQ(view.bounds().high, (BatchAndLq{64, 192}));  // 200 down to one
  EXPECT_EQ(view.of({100, 8}), (BatchAndLq{8, 100}));    // in the order of the workload
  EXPECT_THROW(PairView(options, {{{"lq", 8, 40}}}), InputError);
  EXPECT_THROW(PairView(options, {{{"seq", 8, 40}}}), InputError);
}

// nnU-Net #362: a network with five poolings takes multiples of 32 only.
TEST(DualOptimizerSteps, StepsOfANetworkThatTakesMultiplesOf32Are32) {
  const auto options = profile("settled", 0.85, 0.05, {{"lq_granularity", std::int64_t{32}, {}}});
  const PairView view(options, batch_and_lq());
  EXPECT_EQ(next_pair(options, view.bounds(), {}, {8, 96}, 0.1).lq, 128);
  EXPECT_EQ(next_pair(options, view.bounds(), {}, {2, 96}, 0.95).lq, 64);
  EXPECT_EQ(next_pair(options, view.bounds(), {{8, 160}}, {8, 96}, 0.1).lq, 128);  // 158 down to 128
  EXPECT_EQ(next_pair(options, view.bounds(), {{8, 160}}, {8, 128}, 0.1).lq, 128);
}

// BasicSR #174: memory follows the area of a patch. Usage 0.50 at lq 64, of which 0.10 is fixed: lq 96
// would take 1.00 and is refused, lq 80 takes 0.725 and is allowed.
TEST(DualOptimizerSteps, AStepEnlargedByTheNetworkMustFitByArea) {
  EXPECT_DOUBLE_EQ(4.0 * 240 * 240 / (16.0 * 32 * 32), 14.0625);
  const auto by = [](std::int64_t unit) {
    return profile("settled", 0.85, 0.05, {{"lq_granularity", unit, {}}});
  };
  EXPECT_EQ(lq_change(by(32), 0.50, {8, 64}), 0);
  EXPECT_EQ(lq_change(by(16), 0.50, {8, 64}), 16);
  EXPECT_EQ(lq_change(by(1), 0.50, {8, 64}), 4);  // as published: no check where nothing was enlarged
}

}  // namespace
}  // namespace vramlab
