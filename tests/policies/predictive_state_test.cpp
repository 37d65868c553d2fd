// A session that is saved and loaded decides as the one that went on; damaged texts are refused.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/policies/made_up_run.hpp"

namespace vramlab {
namespace {

ParameterSpace pairs() { return {{{"batch", 2, 64}, {"lq", 32, 256}}}; }

MadeUpLaw noisy_area() {
  return {.step =
              [](const Point& point) {
                return 0.01 +
                       0.918 * static_cast<double>(point[0] * point[1] * point[1]) / (12.0 * 128 * 128);
              },
          .base = 0.005,
          .noise = 0.01};
}

const OptionMap kEvery10{{"adjustment_frequency", std::int64_t{10}, {}}};

TunerSession new_session() {
  return {builtin_policies()->tuners.make({"predictive", "", kEvery10, ""}, pairs()), pairs(), {8, 64}};
}

// At every step of a run with a failure in it: what comes later is equal to the last character.
TEST(PredictiveState, LaterDecisionsAreIdenticalAfterARestart) {
  for (std::int64_t at = 1; at < 80; ++at) {
    MadeUpRun straight{noisy_area(), pairs(), {8, 64}, kEvery10};
    MadeUpRun saved{noisy_area(), pairs(), {8, 64}, kEvery10};
    const auto step = [](MadeUpRun& run) {
      run.capacity = run.iteration() == 40 ? 0.5 : 1;
      return run.step();
    };
    for (std::int64_t i = 0; i < at; ++i) {
      step(straight);
      step(saved);
    }
    const std::string text = saved.session().save();
    saved.replace_session(builtin_policies()->tuners.make({"predictive", "", kEvery10, ""}, pairs()), pairs(),
                          {2, 32});
    saved.session().load(text);
    ASSERT_EQ(saved.session().save(), text);
    for (std::int64_t i = at; i < 120; ++i) {
      const StepDecision a = step(straight);
      const StepDecision b = step(saved);
      ASSERT_EQ(a.reason, b.reason) << at << ", " << i;
      ASSERT_EQ(straight.point(), saved.point());
    }
  }
}

TEST(PredictiveState, EveryDamageIsRefusedAndChangesNothing) {
  MadeUpRun run{noisy_area(), pairs(), {8, 64}, kEvery10};
  run.run(60);
  const std::string text = run.session().save();
  for (std::size_t cut = 0; cut < text.size(); cut += 7) {
    TunerSession session = new_session();
    const std::string before = session.save();
    EXPECT_THROW(session.load(text.substr(0, cut)), InputError) << cut;
    EXPECT_EQ(session.point(), (Point{8, 64}));
    EXPECT_EQ(session.save(), before);
  }
  TunerSession session = new_session();
  EXPECT_THROW(session.load(text + " 1"), InputError);
  EXPECT_THROW(session.load("tuner-session-1 8 64\npredictive-3" + text.substr(text.find(' '))), InputError);
  EXPECT_THROW(session.load("tuner-session-1 8 640" + text.substr(text.find('\n'))), InputError);
  EXPECT_THROW(session.load("tuner-session-1 8" + text.substr(text.find('\n'))), InputError);
}

TEST(PredictiveState, APolicyThatSavesNothingSaysSo) {
  TunerSession session{builtin_policies()->tuners.make({"fixed", "", {}, ""}, pairs()), pairs(), {8, 64}};
  EXPECT_EQ(session.save(), "");
  EXPECT_THROW(session.load("tuner-session-1 8 64\nx"), InputError);
}

// A workload may declare that its steps take no time: nothing is learnt from that.
TEST(PredictiveState, StepsThatTakeNoTimeLeaveAStateThatCanBeLoaded) {
  MadeUpRun run{noisy_area(), pairs(), {8, 64}, kEvery10};
  run.seconds_a_step = 0;
  run.run(60);
  EXPECT_GT(run.settled_after(), 0);
  const std::string text = run.session().save();
  TunerSession session = new_session();
  session.load(text);
  EXPECT_EQ(session.save(), text);
}

// The process begins anew, its counters at 0 and its first steps special again; the laws are still known.
TEST(PredictiveState, AfterARestartWhatWasLearntStillHolds) {
  MadeUpRun run{noisy_area(), pairs(), {8, 64}, kEvery10};
  run.run(60);
  const Point settled = run.point();
  run.begin_process(40);
  run.run(100);
  EXPECT_EQ(run.point(), settled);
}

// Saved with the checkpoint, what it knows goes on without a gap; the first step of the new process is
// special all the same, and no stray reading of the old one.
TEST(PredictiveState, TheFirstStepAfterACheckpointIsNoOutlier) {
  MadeUpRun run{noisy_area(), pairs(), {8, 64}, kEvery10};
  run.run(60);
  const std::string text = run.session().save();
  run.begin_process(60);
  run.replace_session(builtin_policies()->tuners.make({"predictive", "", kEvery10, ""}, pairs()), pairs(),
                      {2, 32});
  run.session().load(text);
  run.besides = 0.05;
  run.run(40);
  const Statistic outlier = run.session().tuner().statistics()[6];
  EXPECT_EQ(outlier.name, "outlier");
  EXPECT_EQ(outlier.value, 0);
}

}  // namespace
}  // namespace vramlab
