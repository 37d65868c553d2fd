// What each declared fault does to a run, in figures that follow from its declaration.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "sim/runs/training_loop.hpp"
#include "tests/runs/forwarded_performer.hpp"
#include "tests/runs/small_training.hpp"

namespace vramlab {
namespace {

/// Moves once, after step `move_after`, by `delta`, and keeps every observation.
class Witness : public Tuner {
 public:
  Witness(std::vector<Observation>& seen, std::vector<Point>& ran, std::int64_t move_after, bool saves)
      : seen_(seen), ran_(ran), move_after_(move_after), saves_(saves) {}

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    seen_.push_back(observation);
    ran_.push_back(question.ran_at());
    TunerAnswer answer{.reset_peak = true};
    if (++steps_ == move_after_) answer.delta = {2};
    return answer;
  }
  [[nodiscard]] std::string save() const override { return saves_ ? std::to_string(steps_) : ""; }
  void load(const std::string& text) override { steps_ = std::stoll(text); }

 private:
  std::vector<Observation>& seen_;
  std::vector<Point>& ran_;
  std::int64_t move_after_;
  bool saves_;
  std::int64_t steps_ = 0;
};

/// Repeats a step that ran out of memory with a batch of 4.
class Retrying : public Tuner {
 public:
  explicit Retrying(std::vector<Observation>& seen) : seen_(seen) {}

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    seen_.push_back(observation);
    if (question.result != StepResult::oom) return {};
    return {.delta = {4 - question.point[0]}, .retry = true};
  }

 private:
  std::vector<Observation>& seen_;
};

class FaultsTest : public SmallTraining {
 protected:
  std::vector<Observation> seen;
  std::vector<Point> ran;

  // The first step of each process fails, and is repeated.
  TrainingRun run_with_a_repeated_step() {
    setup.start = {20};  // 11 GiB
    return run_training(setup, TunerMaker{[this] { return std::make_unique<Retrying>(seen); }});
  }

  static std::vector<std::int64_t> numbers(const TrainingRun& result) {
    std::vector<std::int64_t> all;
    for (const IterationRecord& step : result.iterations) all.push_back(step.iteration);
    return all;
  }

  TrainingRun run(std::int64_t move_after = 0, bool saves = false) {
    return run_training(
        setup, TunerMaker{[=, this] { return std::make_unique<Witness>(seen, ran, move_after, saves); }});
  }
};

TEST_F(FaultsTest, ALeakLeavesItsBytesBehindAtEveryStep) {
  setup.faults.leak = {.per_step = 16_MiB, .from = 3, .to = 12};
  const TrainingRun result = run();
  EXPECT_EQ(result.iterations[1].memory.allocated, 512_MiB);
  EXPECT_EQ(result.iterations[2].memory.allocated, 528_MiB);
  EXPECT_EQ(result.iterations[19].memory.allocated, 672_MiB);
  EXPECT_EQ(result.faults.leaked, 160_MiB);
}

TEST_F(FaultsTest, ALeakEndsInFailure) {
  setup.faults.leak = {.per_step = 1_GiB};
  const TrainingRun result = run();                        // 3 GiB + 1 GiB a step; the card has 7.5
  EXPECT_EQ(result.iterations[3].result, StepResult::ok);  // its own leak comes on top: 0.5 + 4 GiB, then
  EXPECT_EQ(result.iterations[4].result, StepResult::ok);
  EXPECT_EQ(result.iterations[5].result, StepResult::oom);  // 3 + 5 GiB
}

TEST_F(FaultsTest, ASearchNeedsMoreInTheFirstStepAtAShape) {
  setup.faults.search = 1_GiB;
  const TrainingRun result = run(5);
  EXPECT_EQ(result.iterations[0].step_peak_allocated, 4_GiB);
  EXPECT_EQ(result.iterations[1].step_peak_allocated, 3_GiB);
  EXPECT_EQ(result.iterations[5].step_peak_allocated, 5_GiB);
  EXPECT_EQ(result.iterations[6].step_peak_allocated, 4_GiB);
  EXPECT_EQ(result.faults.heavy_steps, 2);
}

TEST_F(FaultsTest, OptimizerStateStaysFromTheFirstStepOn) {
  setup.faults.optimizer_state = 1_GiB;
  const TrainingRun result = run();
  EXPECT_EQ(result.iterations[0].step_peak_allocated, 3_GiB);
  EXPECT_EQ(result.iterations[1].step_peak_allocated, 4_GiB);
  EXPECT_EQ(result.iterations[19].memory.allocated, 1_GiB + 512_MiB);
}

TEST_F(FaultsTest, AnOutlierNeedsMoreInItsStepAlone) {
  setup.faults.outlier = 5_GiB;
  setup.faults.outlier_chance = 0.3;
  const TrainingRun result = run();
  for (const IterationRecord& step : result.iterations) {
    EXPECT_EQ(step.result == StepResult::oom, setup.faults.has_outlier(step.iteration)) << step.iteration;
  }
  EXPECT_GT(result.faults.heavy_ooms, 0);
  EXPECT_EQ(result.faults.heavy_ooms, result.faults.heavy_steps);
}

TEST_F(FaultsTest, AnErrorIsNoOom) {
  setup.faults.error_chance = 1;
  const TrainingRun result = run();
  for (const IterationRecord& step : result.iterations) EXPECT_EQ(step.result, StepResult::error);
  EXPECT_EQ(result.memory.num_ooms, 0);
  EXPECT_EQ(result.iterations.size(), 20u);
}

TEST_F(FaultsTest, ADelayedChangeLeavesThatManyStepsAtTheOldParameters) {
  setup.faults.apply_delay = 3;
  const TrainingRun result = run(1);
  for (std::size_t step = 0; step < 4; ++step) EXPECT_EQ(result.iterations[step].point(), Point{4}) << step;
  EXPECT_EQ(result.iterations[4].point(), Point{6});
  EXPECT_EQ(ran[3], Point{4});
  EXPECT_EQ(ran[4], Point{6});
  EXPECT_EQ(result.faults.late_changes, 3);
  EXPECT_EQ(result.final_point, Point{6});
}

TEST_F(FaultsTest, ALateReadingSaysWhenItWasTaken) {
  setup.faults.reading_delay = 2;
  const TrainingRun result = run();
  EXPECT_EQ(seen[0].reading, 0);
  EXPECT_EQ(seen[1].reading, 0);
  EXPECT_EQ(seen[2].reading, 1);
  EXPECT_EQ(seen[2].iteration, 3);
  EXPECT_EQ(seen[19].reading, 18);
  EXPECT_EQ(result.faults.missing_readings, 20);
}

TEST_F(FaultsTest, AMissingReadingLeavesTheLastOne) {
  setup.faults.missing_readings = 0.5;
  run();
  std::int64_t last = 0;
  for (const Observation& observation : seen) {
    const bool missing = setup.faults.reading_is_missing(observation.iteration);
    EXPECT_EQ(observation.reading, missing ? last : observation.iteration);
    last = observation.reading;
  }
}

// A repeated step and a restart make the numbers of steps and iterations differ.
TEST_F(FaultsTest, ErrorsAreThoseOfTheIterationWhateverTheTunerDoes) {
  setup.faults.error_chance = 0.5;
  setup.faults.restart = {.after = 7, .checkpoint_every = 5};
  const TrainingRun result = run_with_a_repeated_step();
  ASSERT_EQ(result.iterations.size(), 20u + 2 + 2);  // two repeated, two lost
  for (const IterationRecord& step : result.iterations) {
    if (step.result == StepResult::oom) continue;
    EXPECT_EQ(step.result == StepResult::error, setup.faults.has_error(step.iteration)) << step.iteration;
  }
}

TEST_F(FaultsTest, MissingReadingsAreThoseOfTheIterationWhateverTheTunerDoes) {
  setup.faults.missing_readings = 0.5;
  run_with_a_repeated_step();
  ASSERT_EQ(seen.size(), 21u);
  for (const Observation& observation : seen) {
    EXPECT_EQ(observation.reading < observation.iteration,
              setup.faults.reading_is_missing(observation.iteration))
        << observation.iteration;
  }
}

TEST_F(FaultsTest, ARestartGoesBackToTheCheckpoint) {
  setup.faults.restart = {.after = 7, .checkpoint_every = 5, .takes = SimTime{1'000'000'000}};
  const TrainingRun result = run();
  ASSERT_EQ(result.iterations.size(), 22u);
  EXPECT_EQ(result.iterations[6].iteration, 7);
  EXPECT_EQ(result.iterations[7].iteration, 6);
  EXPECT_EQ(result.iterations[7].start - result.iterations[6].start - result.iterations[6].duration,
            SimTime{1'000'000'000});
  EXPECT_TRUE(result.iterations[4].kept);
  EXPECT_FALSE(result.iterations[5].kept);
  EXPECT_FALSE(result.iterations[6].kept);
  EXPECT_TRUE(result.iterations[7].kept);
}

TEST_F(FaultsTest, ATunerIsToldOfEveryNewProcess) {
  setup.faults.restart = {.after = 7, .checkpoint_every = 5};
  run();
  ASSERT_EQ(seen.size(), 22u);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].new_process, i == 0 || i == 7) << i;
}

TEST_F(FaultsTest, ARestartKeepsWhatASessionSaved) {
  setup.faults.restart = {.after = 7};
  EXPECT_EQ(run(2, true).final_point, Point{6});             // moved once, and the second tuner knows it
  EXPECT_EQ(run(2, false).iterations[7].point(), Point{4});  // begins anew
}

// The change after step 6 came after the checkpoint, and is made once more.
TEST_F(FaultsTest, ARestartKeepsWhatASessionHadSavedWithTheCheckpoint) {
  setup.faults.restart = {.after = 7, .checkpoint_every = 5};
  const TrainingRun result = run(6, true);
  EXPECT_EQ(result.iterations[6].point(), Point{6});  // iteration 7
  EXPECT_EQ(result.iterations[7].point(), Point{4});  // iteration 6
  EXPECT_EQ(result.iterations[8].point(), Point{6});
}

TEST_F(FaultsTest, ARestartBeforeTheFirstCheckpointBeginsAnew) {
  setup.faults.restart = {.after = 4, .checkpoint_every = 5};
  const TrainingRun result = run(2, true);
  EXPECT_EQ(result.iterations[3].point(), Point{6});
  EXPECT_EQ(result.iterations[4].iteration, 1);
  EXPECT_EQ(result.iterations[4].point(), Point{4});
  EXPECT_EQ(result.iterations[6].point(), Point{6});  // it has learnt nothing that it could have lost
}

TEST_F(FaultsTest, AProcessDiesAfterItsLastIterationIsDone) {
  setup.iterations = 3;
  setup.faults.restart = {.after = 1};
  const TrainingRun result = run_with_a_repeated_step();
  EXPECT_EQ(numbers(result), (std::vector<std::int64_t>{1, 1, 2, 2, 3}));
  EXPECT_EQ(result.iterations[1].result, StepResult::ok);
  for (const IterationRecord& step : result.iterations) EXPECT_TRUE(step.kept) << step.iteration;
}

// Whatever performs the steps is handed what a fault adds to them.
TEST_F(FaultsTest, ThatAddMemoryReachWhatPerformsTheSteps) {
  setup.faults = {.leak = {.per_step = 2_MiB}, .outlier = 1_GiB, .outlier_chance = 0.5};
  const TrainingRun pretended = run();
  int made = 0;
  setup.make_performer = forwarded_performers(made);
  const TrainingRun performed = run();
  EXPECT_EQ(made, 1);
  EXPECT_GT(performed.faults.heavy_steps, 0);
  EXPECT_EQ(performed.faults.heavy_steps, pretended.faults.heavy_steps);
  EXPECT_EQ(performed.faults.leaked, pretended.faults.leaked);
  EXPECT_EQ(performed.peak_reserved.bytes, pretended.peak_reserved.bytes);
}

TEST_F(FaultsTest, AValidationShowsInTheReadingAfterIt) {
  setup.phases = {{.name = "validation", .every = 10, .point = {10}}};
  run();
  EXPECT_FALSE(seen[9].after_phase);
  EXPECT_TRUE(seen[10].after_phase);
  EXPECT_EQ(seen[10].memory.peak_allocated, 6_GiB);
  EXPECT_FALSE(seen[11].after_phase);
}

TEST_F(FaultsTest, ADeviceTellsWhatNobodyHolds) {
  setup.others = {{.from = SimTime{0}, .to = SimTime::max(), .bytes = 1_GiB}};
  const TrainingRun result = run();
  const MemoryView& memory = result.iterations[5].memory;
  EXPECT_EQ(memory.reserved + memory.device_free.value(), 6_GiB + 512_MiB);  // 8 − context − others
}

TEST(Faults, AreDrawnAsOftenAsDeclared) {
  const Faults faults{.seed = 7, .outlier = 1, .outlier_chance = 0.1, .error_chance = 0.02};
  int outliers = 0;
  int errors = 0;
  for (int i = 1; i <= 10000; ++i) {
    outliers += faults.has_outlier(i) ? 1 : 0;
    errors += faults.has_error(i) ? 1 : 0;
  }
  EXPECT_NEAR(outliers, 1000, 90);  // three standard deviations
  EXPECT_NEAR(errors, 200, 42);
}

TEST(Faults, OfOtherSeedsComeAtOtherSteps) {
  Faults one{.seed = 1, .error_chance = 0.5};
  Faults other{.seed = 2, .error_chance = 0.5};
  int differ = 0;
  for (int i = 1; i <= 100; ++i) differ += one.has_error(i) != other.has_error(i) ? 1 : 0;
  EXPECT_GT(differ, 20);
}

}  // namespace
}  // namespace vramlab
