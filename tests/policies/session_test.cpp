#include "policies/contract/session.hpp"

#include <limits>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

using testing::StartsWith;

// Gives one prepared answer for ever.
class Scripted final : public Tuner {
 public:
  explicit Scripted(TunerAnswer answer) : answer_(std::move(answer)) {}
  TunerAnswer decide(const TunerQuestion&, const Observation&) override { return answer_; }

 private:
  TunerAnswer answer_;
};

TunerSession session_with(TunerAnswer answer, Point start = {8, 96}) {
  return {
      std::make_unique<Scripted>(std::move(answer)), {{{"batch", 2, 64}, {"lq", 32, 256}}}, std::move(start)};
}

Observation at(std::int64_t iteration) {
  return {iteration, std::chrono::seconds(iteration), {.allocated = 10, .peak_allocated = 20, .total = 100}};
}

TEST(TunerSession, RecordsWhatChangedWhenAndWhy) {
  TunerSession session = session_with({.delta = {2, -4}, .reason = "there is room"});
  const StepDecision decision = session.after_step(StepResult::ok, at(7));
  EXPECT_TRUE(decision.moved);
  EXPECT_EQ(decision.reason, "there is room");
  ASSERT_EQ(session.adjustments().size(), 1u);
  const Adjustment& adjustment = session.adjustments()[0];
  EXPECT_EQ(adjustment.iteration, 7);
  EXPECT_EQ(adjustment.time, std::chrono::seconds(7));
  EXPECT_EQ(adjustment.from, (Point{8, 96}));
  EXPECT_EQ(adjustment.to, (Point{10, 92}));
  EXPECT_EQ(adjustment.reason, "there is room");
  EXPECT_EQ(adjustment.memory.peak_allocated, 20u);
}

TEST(TunerSession, ClampsWhatGoesTooFar) {
  TunerSession session = session_with(
      {.delta = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}});
  session.after_step(StepResult::ok, at(1));
  EXPECT_EQ(session.point(), (Point{64, 32}));
  EXPECT_FALSE(session.after_step(StepResult::ok, at(2)).moved);  // clamped to where it is: no adjustment
  EXPECT_EQ(session.adjustments().size(), 1u);
}

TEST(TunerSession, EndsTheRunOfAnAnswerOfTheWrongSize) {
  TunerSession session = session_with({.delta = {1}, .retry = true});
  const StepDecision decision = session.after_step(StepResult::oom, at(1));
  EXPECT_TRUE(decision.end_run);
  EXPECT_FALSE(decision.retry);
  EXPECT_FALSE(decision.moved);
  EXPECT_EQ(decision.reason, "the policy gave 1 changes for 2 parameters; its run ends here");
  EXPECT_THROW(session.after_step(StepResult::ok, at(2)), InternalError);
}

TEST(TunerSession, AChangeAfterAnOomSaysSo) {
  TunerSession session = session_with({.delta = {-1, 0}, .reason = "less is safer"});
  session.after_step(StepResult::oom, at(1));
  EXPECT_EQ(session.adjustments().at(0).reason, "oom: less is safer");
  TunerSession silent = session_with({.delta = {-1, 0}});
  silent.after_step(StepResult::oom, at(1));
  EXPECT_EQ(silent.adjustments().at(0).reason, "oom");
}

TEST(TunerSession, HandsOnWhatIsToDo) {
  TunerSession session =
      session_with({.reset_peak = true, .empty_cache = true, .retry = true, .log = {"line"}});
  const StepDecision failed = session.after_step(StepResult::oom, at(1));
  EXPECT_TRUE(failed.reset_peak);
  EXPECT_TRUE(failed.empty_cache);
  EXPECT_TRUE(failed.retry);
  EXPECT_EQ(failed.log, std::vector<std::string>{"line"});
  EXPECT_FALSE(session.after_step(StepResult::ok, at(2)).retry);  // only a failed step is run again
}

TEST(TunerSession, TellsItsListenerAfterRecording) {
  TunerSession session = session_with({.delta = {1, 0}});
  std::vector<Point> heard;
  session.on_adjustment([&](const Adjustment& adjustment) { heard.push_back(adjustment.to); });
  session.after_step(StepResult::ok, at(1));
  session.set_point({4, 1000});
  EXPECT_EQ(session.point(), (Point{4, 256}));
  session.after_step(StepResult::ok, at(2));
  EXPECT_EQ(heard, (std::vector<Point>{{9, 96}, {5, 256}}));
}

TEST(TunerSession, RefusesAStartOutsideTheSpace) {
  try {
    session_with({}, {1, 300});
    FAIL();
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 2u);
    EXPECT_EQ(error.problems()[0],
              (Problem{"batch", "the start value 1 is out of range. Allowed: batch 2 to 64."}));
    EXPECT_THAT(error.problems()[1].what, StartsWith("the start value 300"));
  }
  EXPECT_THROW(session_with({}, {8}), InputError);
  EXPECT_THROW(session_with({}).set_point({8}), InputError);
}

TEST(TunerSession, NeedsAKnownTotal) {
  TunerSession session = session_with({});
  EXPECT_THROW(session.after_step(StepResult::ok, {}), InternalError);
}

// What a tuner hears of a phase, and what it may do then: before it only empty the cache and reset the peak.
class PhaseListener final : public Tuner {
 public:
  TunerAnswer decide(const TunerQuestion&, const Observation&) override { return {}; }
  TunerAnswer note_phase(const PhaseReport& phase, const Observation&) override {
    heard.push_back(phase);
    return {.delta = {-1, 0}, .empty_cache = true, .retry = true, .reason = "room"};
  }
  std::vector<PhaseReport> heard;
};

TEST(TunerSession, TellsOfPhasesAndMovesOnlyAfterThem) {
  auto listener = std::make_unique<PhaseListener>();
  const std::vector<PhaseReport>& heard = listener->heard;
  TunerSession session{std::move(listener), {{{"batch", 2, 64}, {"lq", 32, 256}}}, {8, 96}};
  PhaseReport report{.name = "validation", .ran = {32, 96}, .follow = {4, 0}, .begins = true};
  StepDecision decision = session.on_phase(report, at(5));
  EXPECT_TRUE(decision.empty_cache);
  EXPECT_FALSE(decision.moved);
  EXPECT_EQ(session.point(), (Point{8, 96}));
  report.begins = false;
  report.result = StepResult::oom;
  report.asked = 7;
  decision = session.on_phase(report, at(5));
  EXPECT_TRUE(decision.moved);
  EXPECT_FALSE(decision.retry);
  EXPECT_EQ(decision.reason, "validation: room");
  EXPECT_EQ(session.point(), (Point{7, 96}));
  ASSERT_EQ(session.adjustments().size(), 1u);
  EXPECT_EQ(session.adjustments()[0].reason, "validation: room");
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[1].point, (Point{8, 96}));
  EXPECT_EQ(heard[1].asked, 7u);
}

}  // namespace
}  // namespace vramlab
