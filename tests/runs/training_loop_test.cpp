#include "sim/runs/training_loop.hpp"

#include <gtest/gtest.h>

#include "tests/runs/small_training.hpp"

namespace vramlab {
namespace {

/// Answers with what the test wants, step by step.
class ScriptedTuner : public Tuner {
 public:
  explicit ScriptedTuner(std::vector<TunerAnswer> answers) : answers_(std::move(answers)) {}
  TunerAnswer decide(const TunerQuestion&, const Observation&) override {
    return next_ < answers_.size() ? answers_[next_++] : TunerAnswer{};
  }

 private:
  std::vector<TunerAnswer> answers_;
  std::size_t next_ = 0;
};

class TrainingLoopTest : public SmallTraining {
 protected:
  TrainingRun run(const std::vector<TunerAnswer>& answers = {}) {
    return run_training(setup, [&] { return std::make_unique<ScriptedTuner>(answers); });
  }
};

// 90 of 300 is a higher share than 250 of 900, and 80 of 100 than both.
TEST(CardPeak, IsTheHighestShareOfAnyCard) {
  CardPeak peak;
  peak.note(90, 300);
  peak.note(250, 900);
  EXPECT_EQ(peak.bytes, 90u);
  EXPECT_EQ(peak.total, 300u);
  peak.note(80, 100);
  EXPECT_EQ(peak.bytes, 80u);
  EXPECT_EQ(peak.total, 100u);
}

TEST_F(TrainingLoopTest, RecordsEveryIteration) {
  const TrainingRun result = run();
  ASSERT_EQ(result.iterations.size(), 20u);
  EXPECT_EQ(result.iterations[0].iteration, 1);
  EXPECT_EQ(result.iterations[19].iteration, 20);
  EXPECT_EQ(result.iterations[5].step_peak_allocated, 3_GiB);
  EXPECT_EQ(result.iterations[5].memory.allocated, 512_MiB);
  EXPECT_EQ(result.iterations[19].duration, SimTime{100'000'000});  // all from cache: no driver call
  EXPECT_EQ(result.peak_allocated.bytes, 3_GiB);
  EXPECT_EQ(result.ended_early, "");
}

TEST_F(TrainingLoopTest, AChangeHoldsFromTheNextStep) {
  const TrainingRun result = run({{.delta = {2}, .reason = "up"}});
  EXPECT_EQ(result.iterations[0].point(), Point{4});
  EXPECT_EQ(result.iterations[0].delta(), Point{2});
  EXPECT_EQ(result.iterations[1].point(), Point{6});
  ASSERT_EQ(result.adjustments.size(), 1u);
  EXPECT_EQ(result.adjustments[0].iteration, 1);
  EXPECT_EQ(result.final_point, Point{6});
}

// A run of a million steps keeps a million records: 136 bytes each where the choice repeats.
TEST_F(TrainingLoopTest, StepsThatRepeatAChoiceShareIt) {
  static_assert(sizeof(IterationRecord) <= 136);
  const TunerAnswer looked{.reason = "hold"};
  const TrainingRun result = run({looked, {}, looked, {}, {.delta = {2}, .reason = "up"}});
  const auto& steps = result.iterations;
  EXPECT_EQ(steps[0].reason(), "hold");
  EXPECT_EQ(steps[0].choice, steps[2].choice);
  EXPECT_EQ(steps[1].choice, steps[3].choice);
  EXPECT_NE(steps[0].choice, steps[1].choice);
  EXPECT_EQ(steps[4].delta(), Point{2});
  EXPECT_EQ(steps[5].point(), Point{6});
  EXPECT_NE(steps[5].choice, steps[3].choice);
  EXPECT_EQ(steps[5].choice, steps[19].choice);
}

TEST_F(TrainingLoopTest, OtherProcessesTakeMemoryForAWhile) {
  setup.others = {{.from = SimTime{450'000'000}, .to = SimTime{850'000'000}, .bytes = 5_GiB}};
  const TrainingRun result = run({});
  std::vector<std::int64_t> failed;
  for (const IterationRecord& step : result.iterations) {
    if (step.result == StepResult::oom) failed.push_back(step.iteration);
  }
  EXPECT_TRUE(failed.empty());  // what the allocator holds is not taken away

  setup.start = {2};
  TunerAnswer grow{.delta = {8}, .reason = "up"};
  const TrainingRun grown = run({{}, {}, {}, {}, {}, grow});
  ASSERT_GT(grown.iterations.size(), 7u);
  EXPECT_EQ(grown.iterations[6].result, StepResult::oom);  // 6 GiB with 5 of 7.5 taken by others
}

TEST_F(TrainingLoopTest, GivesUpWhenNoStepSucceeds) {
  setup.start = {20};  // 11 GiB
  const TrainingRun result = run();
  EXPECT_EQ(result.iterations.size(), static_cast<std::size_t>(kMostFailuresInARow));
  EXPECT_EQ(result.ended_early, "10 steps in a row ran out of memory at batch 20");
}

// Without a word it would look like a run that came to its end.
TEST_F(TrainingLoopTest, APolicyThatEndsItsRunWithoutAReasonEndsItEarly) {
  const TrainingRun result = run({{.end_run = true}});
  EXPECT_EQ(result.iterations.size(), 1u);
  EXPECT_EQ(result.ended_early, "the policy ended it and gave no reason");
}

TEST_F(TrainingLoopTest, ARetriedStepIsNoIterationOfItsOwn) {
  setup.start = {20};
  setup.iterations = 2;
  const TrainingRun result = run({{.delta = {-16}, .retry = true, .reason = "oom: down"}});
  ASSERT_EQ(result.iterations.size(), 3u);
  EXPECT_EQ(result.iterations[0].iteration, 1);
  EXPECT_EQ(result.iterations[1].iteration, 1);
  EXPECT_EQ(result.iterations[1].point(), Point{4});
  EXPECT_EQ(result.iterations[2].iteration, 2);
}

TEST_F(TrainingLoopTest, PhasesRunAtTheirOwnParameters) {
  setup.phases = {{.name = "validation", .every = 10, .point = {10}}};
  const TrainingRun result = run();
  EXPECT_EQ(result.peak_allocated.bytes, 6_GiB);
  EXPECT_EQ(result.iterations[8].memory.peak_allocated, 3_GiB);
  EXPECT_EQ(result.iterations[10].memory.peak_allocated, 6_GiB);  // the device's counter saw the phase
}

TEST_F(TrainingLoopTest, EqualInputGivesAnEqualRun) {
  const TrainingRun a = run({{.delta = {3}, .reason = "up"}});
  const TrainingRun b = run({{.delta = {3}, .reason = "up"}});
  EXPECT_EQ(a.duration, b.duration);
  EXPECT_EQ(a.memory, b.memory);
}

/// Keeps what it is told of phases, and gives way to one that fails.
class PhaseTuner : public Tuner {
 public:
  explicit PhaseTuner(std::vector<PhaseReport>& heard) : heard_(heard) {}
  TunerAnswer decide(const TunerQuestion&, const Observation&) override { return {}; }
  TunerAnswer note_phase(const PhaseReport& phase, const Observation&) override {
    heard_.push_back(phase);
    if (phase.result == StepResult::oom) return {.delta = {-1}, .reason = "smaller"};
    return {};
  }

 private:
  std::vector<PhaseReport>& heard_;
};

// A validation of four times the batch: 1 GiB + 16 · 0.5 GiB do not fit beside a context on 8 GiB; 12 do.
TEST_F(TrainingLoopTest, APhaseFollowsTheBatchAndItsTunerIsTold) {
  setup.phases = {{.name = "validation", .every = 10, .point = {4}, .follow = {4}}};
  std::vector<PhaseReport> heard;
  const TrainingRun result = run_training(setup, [&] { return std::make_unique<PhaseTuner>(heard); });
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_TRUE(heard[0].begins);
  EXPECT_EQ(heard[0].ran, Point{16});
  EXPECT_EQ(heard[1].result, StepResult::oom);
  EXPECT_EQ(heard[1].point, Point{4});
  EXPECT_GT(heard[1].asked, 0u);
  EXPECT_EQ(heard[3].ran, Point{12});
  EXPECT_EQ(heard[3].result, StepResult::ok);
  EXPECT_EQ(heard[3].peak_allocated, 7_GiB);
  EXPECT_EQ(result.phases.ooms, 1);
  EXPECT_EQ(result.iterations[8].delta(), Point{});  // it shared what it chose with the step after it
  EXPECT_EQ(result.iterations[8].reason(), "");
  EXPECT_EQ(result.iterations[9].delta(), Point{-1});
  EXPECT_EQ(result.iterations[9].reason(), "validation: smaller");
  EXPECT_EQ(result.iterations[10].point(), Point{3});
}

/// Empties the cache when a phase has ended.
class TidyTuner : public Tuner {
 public:
  TunerAnswer decide(const TunerQuestion&, const Observation&) override { return {}; }
  TunerAnswer note_phase(const PhaseReport& phase, const Observation&) override {
    return {.empty_cache = !phase.begins};
  }
};

// A cudaFree takes 1 ms here, and all else of the driver nothing: the step leaves five segments, 512 MiB of
// what is fixed and as much for each of four samples.
TEST_F(TrainingLoopTest, WhatATunerDoesAboutAPhaseTakesTimeOfThePhase) {
  const auto always = [](SimTime time) { return std::vector<MeasuredTime>{{1_MiB, time}, {2_MiB, time}}; };
  const auto nothing = always(SimTime{0});
  setup.process.driver_times = {.mallocs = nothing,
                                .frees = always(SimTime{1'000'000}),
                                .creates = nothing,
                                .maps = nothing,
                                .unmaps = nothing};
  setup.phases = {{.name = "validation", .every = 10, .point = {4}}};
  const TrainingRun result = run_training(setup, [] { return std::make_unique<TidyTuner>(); });
  EXPECT_EQ(result.phases.time, SimTime{2 * 105'000'000});
}

/// Halves after a failure, else one more; notes the peaks that it sees.
class HalvingTuner : public Tuner {
 public:
  explicit HalvingTuner(std::vector<Bytes>& peaks) : peaks_(peaks) {}
  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    const std::int64_t batch = question.point[0];
    if (question.result == StepResult::oom) return {.delta = {-batch / 2}, .reason = "half"};
    peaks_.push_back(observation.memory.peak_allocated);
    return {.delta = {1}, .reason = "more"};
  }

 private:
  std::vector<Bytes>& peaks_;
};

// 13 samples fit (1 GiB + 13 · 0.5 GiB are the 7.5 that there are). The phase runs at 32 and 16, which fail,
// at 10, its lower bound, to 13, at 14, which fails, and from 10 again.
TEST_F(TrainingLoopTest, ATunerOfItsOwnMovesAPhaseWithinBounds) {
  setup.phases = {{.name = "validation", .every = 2, .point = {32}, .follow = {}}};
  std::vector<Bytes> peaks;
  setup.moved_phases = {{.phase = 0, .bounds = {{{"batch", 10, 40}}}, .make_tuner = [&] {
                           return std::make_unique<HalvingTuner>(peaks);
                         }}};
  std::vector<PhaseReport> heard;
  const TrainingRun result = run_training(setup, [&] { return std::make_unique<PhaseTuner>(heard); });
  EXPECT_EQ(heard.at(1).result, StepResult::error);  // it gave way itself
  EXPECT_EQ(heard.at(5).result, StepResult::ok);
  EXPECT_EQ(result.phases.ooms, 3);
  ASSERT_EQ(result.phase_points.size(), 1u);
  EXPECT_EQ(result.phase_points[0], Point{13});
  ASSERT_EQ(result.phase_adjustments[0].size(), 10u);
  std::vector<std::int64_t> went;
  for (const Adjustment& change : result.phase_adjustments[0]) went.push_back(change.to[0]);
  EXPECT_EQ(went, (std::vector<std::int64_t>{16, 10, 11, 12, 13, 14, 10, 11, 12, 13}));
  EXPECT_EQ(result.phase_adjustments[0][1].iteration, 4);
  EXPECT_EQ(result.phase_adjustments[0][1].reason, "oom: half");
  EXPECT_EQ(peaks, (std::vector<Bytes>{6_GiB, 6_GiB + 512_MiB, 7_GiB, 7_GiB + 512_MiB, 6_GiB, 6_GiB + 512_MiB,
                                       7_GiB}));
  EXPECT_TRUE(result.adjustments.empty());
  EXPECT_EQ(result.final_point, Point{4});
}

// At most what the model allows, whatever training's bounds are.
TEST(Phase, FollowsNoFurtherThanTheModel) {
  const Phase phase{.name = "validation", .every = 1, .point = {8, 128}, .follow = {4, 0}};
  const ParameterSpace range{{{"batch", 1, 64}, {"lq", 32, 256}}};
  EXPECT_EQ(phase.beside({8, 96}, range), (Point{32, 128}));
  EXPECT_EQ(phase.beside({40, 96}, range), (Point{64, 128}));
}

}  // namespace
}  // namespace vramlab
