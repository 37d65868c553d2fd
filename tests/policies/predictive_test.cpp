// `predictive` on made-up laws of memory: what it must do and must not do, in figures of the laws themselves.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "policies/tuners/pair_dwell.hpp"
#include "tests/policies/made_up_run.hpp"

namespace vramlab {
namespace {

ParameterSpace space_of_pairs() { return {{{"batch", 2, 64}, {"lq", 32, 256}}}; }
ParameterSpace batches() { return {{{"batch", 2, 64}}}; }

OptionMap every(std::int64_t steps, const OptionMap& more = {}) {
  return overlay({{"adjustment_frequency", steps, {}}}, more);
}

// 0.933 of the card at (12, 128), nearly in proportion to batch·lq².
MadeUpLaw area() {
  return {.step =
              [](const Point& point) {
                return 0.01 +
                       0.918 * static_cast<double>(point[0] * point[1] * point[1]) / (12.0 * 128 * 128);
              },
          .base = 0.005};
}

MadeUpLaw line(double fixed, double per_sample) {
  return {.step = [=](const Point& point) { return fixed + per_sample * static_cast<double>(point[0]); },
          .base = 0.002};
}

bool log_has(const StepDecision& decision, const std::string& text) {
  return std::any_of(decision.log.begin(), decision.log.end(),
                     [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

// Scenario flip-flop: usage 0.10 + 0.081 a sample. Batch 9 (0.829) is inside, 10 (0.91) is not.
TEST(Predictive, FindsTheBatchBetweenTheStepsOfTheFlipFlop) {
  MadeUpRun run{line(0.098, 0.081), batches(), {8}, every(10)};
  run.run(100);
  EXPECT_EQ(run.point(), Point{9});
  EXPECT_LE(run.turns(), 2);
}

// Scenario corner: (2, 256) is 23 points under the target, a third sample of that size overshoots.
TEST(Predictive, LeavesTheCornerByGivingSizeForBatch) {
  MadeUpRun run{area(), space_of_pairs(), {2, 64}, every(10)};
  run.run(100);
  EXPECT_GT(run.peak(), 0.87);
  EXPECT_LE(run.highest, 0.9);
  EXPECT_LE(run.settled_after(), 10);
  EXPECT_LE(run.turns(), 2);
}

TEST(Predictive, ComesDownFromAboveTheBandInOneOrTwoMoves) {
  MadeUpRun run{area(), space_of_pairs(), {12, 128}, every(10)};
  run.run(100);
  EXPECT_GT(run.peak(), 0.87);
  EXPECT_LE(run.peak(), 0.9);
  EXPECT_LE(run.session().adjustments().size(), 3u);
}

// K3-01: card 11 GiB, iterations of 9.849, 5.010, 5.016, 5.016 GB. The first one must not make anything
// shrink, and whoever grows must know that it comes again: at 0.90 of the card no sample more has room.
TEST(Predictive, AFirstIterationNeitherShrinksNorIsForgotten) {
  MadeUpLaw law = line(0.0, 5.016 / 11 / 24);
  law.base = 0.001;
  law.factor = [](const Point&, std::int64_t visit) {
    return visit == 0 ? 9.849 / 5.016 : visit == 1 ? 5.010 / 5.016 : 1;
  };
  MadeUpRun run{law, batches(), {24}, every(25)};
  run.run(200);
  EXPECT_EQ(run.point(), Point{24});
  EXPECT_TRUE(run.session().adjustments().empty());
}

// The same law from a small start: every pair it goes to has room for its own first iteration.
TEST(Predictive, GrowsNoFurtherThanFirstIterationsAllow) {
  MadeUpLaw law = line(0.0, 5.016 / 11 / 24);
  law.factor = [](const Point&, std::int64_t visit) { return visit == 0 ? 9.849 / 5.016 : 1; };
  MadeUpRun run{law, batches(), {8}, every(25)};
  run.run(300);
  EXPECT_LE(run.highest, 0.9);
  EXPECT_GE(run.point()[0], 22);  // 24 would have 0.897 in its first iteration
  EXPECT_TRUE(run.failed().empty());
}

// K3-04: 2934, 4413, 4433, 4537, 4537, 4537 MiB. Nothing is judged before the series is flat, and what is
// learnt is the flat part: iteration 1 alone is 35 % low.
TEST(Predictive, WaitsUntilMemoryIsFlat) {
  MadeUpLaw law = line(0.05, 0.01);
  law.factor = [](const Point&, std::int64_t visit) {
    constexpr double kRamp[] = {2934, 4413, 4433, 4537};
    return kRamp[std::min<std::int64_t>(visit, 3)] / 4537;
  };
  MadeUpRun run{law, batches(), {16}, every(10)};
  run.run(5);
  EXPECT_TRUE(run.session().adjustments().empty());
  run.run(1);  // three readings of 4537 by now
  ASSERT_EQ(run.session().adjustments().size(), 1u);
  EXPECT_NE(run.last().reason.find("peak 0.212"), std::string::npos) << run.last().reason;
}

// K3-11: every batch fails, also at the minimum. No progress must not look like training.
TEST(Predictive, EndlessRecoveryEndsTheRun) {
  MadeUpRun run{area(), space_of_pairs(), {8, 64}, every(10, {{"oom_floor_limit", std::int64_t{5}, {}}})};
  run.always_fails = true;
  run.run(1000);
  EXPECT_TRUE(run.session().ended());
  EXPECT_EQ(run.point(), (Point{2, 32}));
  EXPECT_LE(run.iteration(), 20);
  EXPECT_NE(run.last().reason.find("5 steps in a row failed at the smallest pair (2, 32)"),
            std::string::npos);
}

TEST(Predictive, SaysThatALeakIsALeak) {
  MadeUpRun run{area(), space_of_pairs(), {8, 96}, every(10)};
  run.leak = 0.0005;
  bool said = false;
  for (int i = 0; i < 40; ++i)
    said = log_has(run.step(), "leak: what is allocated between steps rose") || said;
  EXPECT_TRUE(said);
  EXPECT_NEAR(run.session().tuner().statistics()[5].value, 0.0005, 1e-9);  // leak_per_step
}

// Room for the leak is made before it is needed: no step fails until the leak alone fills the card.
TEST(Predictive, GivesWayToALeakInTime) {
  MadeUpRun run{area(), space_of_pairs(), {8, 96}, every(10)};
  run.leak = 0.0005;
  run.run(1000);
  EXPECT_TRUE(run.failed().empty());
  EXPECT_LE(run.highest, 0.9 + 0.0005);
}

TEST(Predictive, SaysThatAnOutlierIsNoLeak) {
  MadeUpRun run{area(), space_of_pairs(), {12, 120}, every(10)};
  run.run(20);
  run.besides = 0.05;
  run.step();
  EXPECT_TRUE(run.last().log.empty());  // not before the next reading tells
  EXPECT_TRUE(log_has(run.step(), "outlier: one step at"));
  EXPECT_DOUBLE_EQ(run.session().tuner().statistics()[5].value, 0);
  EXPECT_NEAR(run.session().tuner().statistics()[6].value, 0.05, 1e-6);
}

// An outlier that would not fit beside the steady step makes room for the next one.
TEST(Predictive, MakesRoomForOutliersThatItHasSeen) {
  MadeUpRun run{area(), space_of_pairs(), {8, 96}, every(10)};
  run.run(50);
  const double before = run.peak();
  run.besides = 0.97 - before;
  run.step();
  run.capacity = 0.95;  // the card has less to give now: 0.08 more would not fit
  run.run(50);
  EXPECT_LE(run.peak() + 0.97 - before, 0.95 + 1e-6);
  EXPECT_TRUE(run.failed().empty());
}

TEST(Predictive, AnErrorThatIsNotOomShrinksNothing) {
  MadeUpRun run{area(), space_of_pairs(), {8, 96}, every(10)};
  run.run(50);
  const Point before = run.point();
  run.error = true;
  EXPECT_TRUE(log_has(run.step(), "an error that is not OOM"));
  run.error = false;
  run.run(50);
  EXPECT_EQ(run.point(), before);
}

TEST(Predictive, TakesRisingRetriesForPressure) {
  MadeUpRun run{area(), space_of_pairs(), {8, 96}, every(10)};
  run.run(50);
  const Point before = run.point();
  for (int i = 0; i < 4; ++i) {
    ++run.retries;
    run.step();
  }
  const bool is_below = run.point()[0] <= before[0] && run.point()[1] <= before[1] && run.point() != before;
  EXPECT_TRUE(is_below);
  EXPECT_NE(run.session().adjustments().back().reason.find("steady steps flush the cache"),
            std::string::npos);
}

TEST(Predictive, OneRetryIsNoPressure) {
  MadeUpRun run{area(), space_of_pairs(), {8, 96}, every(10)};
  run.run(50);
  const Point before = run.point();
  ++run.retries;
  run.run(50);
  EXPECT_EQ(run.point(), before);
}

// What another process holds is not there to give: the size of the card says nothing.
TEST(Predictive, AimsAtWhatTheCardCanReallyGive) {
  MadeUpRun run{area(), space_of_pairs(), {8, 64}, every(10)};
  run.capacity = 0.6;
  run.run(100);
  EXPECT_TRUE(run.failed().empty());
  EXPECT_LE(run.peak(), 0.6);
  EXPECT_GT(run.peak(), 0.55);
}

TEST(Predictive, ComesBackWhenMemoryIsGivenBack) {
  MadeUpRun run{area(), space_of_pairs(), {8, 64}, every(10)};
  run.capacity = 0.5;
  run.run(60);
  run.capacity = 0.45;  // less than is in use: the next step fails
  run.run(30);
  ASSERT_FALSE(run.failed().empty());
  run.capacity = 1;
  run.run(100);
  EXPECT_GT(run.peak(), 0.85);
}

// K3-09: a network that takes multiples of 32 only.
TEST(Predictive, SizesAreMultiplesOfTheGranularity) {
  MadeUpRun run{area(), space_of_pairs(), {8, 100}, every(10, {{"lq_granularity", std::int64_t{32}, {}}})};
  run.step();
  EXPECT_EQ(run.point()[1], 96);
  for (int i = 0; i < 100; ++i) {
    run.step();
    EXPECT_EQ(run.point()[1] % 32, 0);
  }
  EXPECT_GT(run.peak(), 0.8);
}

TEST(Predictive, KeepsWithinTheTargetWhereToldTo) {
  MadeUpRun run{area(), space_of_pairs(), {8, 64}, every(10, {{"bound_at", std::string("target"), {}}})};
  run.run(200);
  EXPECT_LE(run.highest, 0.85);
  EXPECT_GT(run.peak(), 0.82);
}

TEST(Predictive, NeverMovesOnceAdjustmentsAreUsedUp) {
  MadeUpRun run{area(), space_of_pairs(), {8, 64}, every(10, {{"max_adjustments", std::int64_t{1}, {}}})};
  run.run(100);
  EXPECT_EQ(run.session().adjustments().size(), 1u);
}

// Counts of tasks: there is no batch, and it moves the first two.
TEST(Predictive, MovesTheFirstParametersOfAWorkloadWithoutABatch) {
  const MadeUpLaw law{.step = [](const Point& point) {
    return 0.05 + 0.01 * static_cast<double>(point[0]) + 0.02 * static_cast<double>(point[1]);
  }};
  MadeUpRun run{law, {{{"T1", 0, 104}, {"T2", 1, 88}, {"T3", 1, 64}}}, {1, 1, 1}, every(10)};
  run.run(200);
  EXPECT_TRUE(run.failed().empty());
  EXPECT_GT(run.peak(), 0.8);
  EXPECT_EQ(run.point()[2], 1);
}

TEST(Predictive, RefusesParametersThatAreNotThere) {
  EXPECT_THROW(builtin_policies()->tuners.make(
                   {"predictive", "", {{"batch_parameter", std::string("bacth"), {}}}, ""}, space_of_pairs()),
               InputError);
  EXPECT_THROW(builtin_policies()->tuners.make(
                   {"predictive", "", {{"size_parameter", std::string("batch"), {}}}, ""}, space_of_pairs()),
               InputError);
  EXPECT_THROW(builtin_policies()->tuners.make(
                   {"predictive", "", {{"lq_granularity", std::int64_t{300}, {}}}, ""}, space_of_pairs()),
               InputError);
}

// Tells `run` of a validation of `ran` that takes `need` of the card, or fails.
StepDecision tell(MadeUpRun& run, const Point& ran, const Point& follow, double need, bool begins = false) {
  PhaseReport report{.name = "validation", .ran = ran, .follow = follow, .begins = begins};
  if (need > 1) report.result = StepResult::oom;
  report.peak_allocated = static_cast<Bytes>(std::min(need, 1.0) * static_cast<double>(kMadeUpTotal));
  const MemoryView memory{.allocated = 50'000, .reserved = 9'000'000, .total = kMadeUpTotal};
  return run.session().on_phase(report,
                                {.iteration = run.iteration(), .memory = memory, .reading = run.iteration()});
}

// One of a size of its own that failed in a full cache gets an empty one from then on; training goes on.
TEST(Predictive, EmptiesTheCacheBeforeAPhaseThatHasFailed) {
  MadeUpRun run{area(), space_of_pairs(), {8, 64}, every(10)};
  run.run(50);
  const Point settled = run.point();
  EXPECT_FALSE(tell(run, {9, 145}, {}, 0, true).empty_cache);
  EXPECT_FALSE(tell(run, {9, 145}, {}, 1.1).moved);
  EXPECT_TRUE(tell(run, {9, 145}, {}, 0, true).empty_cache);
  EXPECT_FALSE(tell(run, {9, 145}, {}, 0.9).moved);
  run.run(50);
  EXPECT_EQ(run.point(), settled);
}

// Four times the batch at half the need of a step of training: it fits beside training at 0.45 of the card. A
// pair at which it would need more than the card is not gone to again.
TEST(Predictive, LeavesRoomForAPhaseThatFollowsTheBatch) {
  const MadeUpLaw law = area();
  MadeUpRun run{law, space_of_pairs(), {8, 64}, every(10)};
  int failures = 0;
  for (int i = 0; i < 40; ++i) {
    run.run(10);
    const Point ran{4 * run.point()[0], run.point()[1]};
    const double need = 0.005 + 0.5 * law.step(ran);
    tell(run, ran, {4, 1}, 0, true);
    if (tell(run, ran, {4, 1}, need).moved) ++failures;
  }
  EXPECT_LE(failures, 1);
  EXPECT_LE(0.5 * law.step({4 * run.point()[0], run.point()[1]}), 0.995);
  EXPECT_GE(law.step(run.point()), 0.35);
}

// The two steps behind a validation fill the cache anew, and say nothing; two more that flush it do.
TEST(Predictive, FlushesRightBehindAPhaseAreNoPressure) {
  MadeUpRun run{area(), space_of_pairs(), {8, 96}, every(10)};
  run.run(50);
  const Point before = run.point();
  tell(run, {9, 145}, {}, 0, true);
  tell(run, {9, 145}, {}, 0.5);
  for (int i = 1; i <= 3; ++i) {
    ++run.retries;
    run.step();
    EXPECT_EQ(run.point(), before) << i;
  }
  ++run.retries;
  run.step();
  EXPECT_NE(run.point(), before);
  EXPECT_NE(run.session().adjustments().back().reason.find("steady steps flush the cache"),
            std::string::npos);
}

// 40 is below the smallest multiple of 48: it does not stay there until the first look.
TEST(Predictive, AStartBelowTheSmallestMultipleGoesUpToItAtOnce) {
  MadeUpRun run{area(), space_of_pairs(), {8, 40}, every(10, {{"lq_granularity", std::int64_t{48}, {}}})};
  run.step();
  EXPECT_EQ(run.point(), (Point{8, 48}));
}

// Nothing is known of what steps take: half the batch, and 7/10 of the size where no batch is left to halve.
TEST(Predictive, AFirstStepThatFailsShrinksByHalvesAndBySevenTenths) {
  MadeUpRun run{area(), space_of_pairs(), {5, 100}, every(10)};
  run.always_fails = true;
  for (const Point& next : {Point{2, 100}, Point{2, 70}, Point{2, 49}, Point{2, 34}, Point{2, 32}}) {
    run.step();
    EXPECT_EQ(run.point(), next);
  }
}

// A first step after a move that takes exactly what there is has found room; only more is a step too far.
TEST(Predictive, AFirstStepThatFillsTheCardExactlyStays) {
  const MadeUpLaw law = area();
  MadeUpRun run{law, space_of_pairs(), {8, 64}, every(10)};
  while (!run.last().moved && run.iteration() < 50) run.step();
  ASSERT_TRUE(run.last().moved);
  const Point there = run.point();
  run.besides = 1 - 1e-9 - law.base - law.step(there);
  ++run.retries;
  EXPECT_FALSE(run.step().moved);
  EXPECT_EQ(run.point(), there);
}

// Three outliers of any size in 1,500 steps: after each it goes back to where it was.
TEST(Predictive, GoesBackAfterAnOutlierThatFailed) {
  MadeUpRun run{area(), space_of_pairs(), {8, 64}, every(10)};
  run.run(300);
  const double settled = run.peak();
  for (int outlier = 0; outlier < 3; ++outlier) {
    run.besides = 2;
    run.step();
    run.run(5);
    EXPECT_LT(run.peak(), 0.95 * settled);
    run.run(400);
    EXPECT_GT(run.peak(), 0.99 * settled) << outlier;
  }
  EXPECT_EQ(run.failed().size(), 3u);
}

// One that fails soon after it was gone to has not proved itself: it stays out of reach.
TEST(Predictive, DoesNotGoBackToAPairThatHardlyRan) {
  MadeUpRun run{area(), space_of_pairs(), {8, 64}, every(10)};
  run.run(12);
  const Point there = run.point();
  run.besides = 2;
  run.step();
  run.run(200);
  EXPECT_LT(run.point()[0] * run.point()[1] * run.point()[1], there[0] * there[1] * there[1]);
}

// Size first: the largest one at any batch, then the largest batch at it.
TEST(Predictive, TakesTheSizeFirstWhereThatIsTheObjective) {
  MadeUpRun run{area(), space_of_pairs(), {2, 64}, every(10, {{"objective", "lq-first", {}}})};
  run.run(100);
  EXPECT_EQ(run.point(), (Point{2, 256}));  // 0.62 of the card; a third sample would take 0.93
}

}  // namespace
}  // namespace vramlab
