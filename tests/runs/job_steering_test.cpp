// Jobs of a queue that carry a tuner: the rules of a training run, on a card that others use too.
#include <gmock/gmock.h>

#include "sim/runs/training_loop.hpp"
#include "tests/runs/queue_rig.hpp"
#include "tests/runs/small_training.hpp"

namespace vramlab {
namespace {

/// Answers as it is told to: the change and the end for each step, by number, else nothing.
class Scripted final : public Tuner {
 public:
  explicit Scripted(std::map<std::int64_t, TunerAnswer> answers) : answers_(std::move(answers)) {}

  TunerAnswer decide(const TunerQuestion& /*question*/, const Observation& observation) override {
    const auto answer = answers_.find(observation.iteration);
    return answer == answers_.end() ? TunerAnswer{} : answer->second;
  }

 private:
  std::map<std::int64_t, TunerAnswer> answers_;
};

/// The workload of SmallTraining as jobs of a card of 8 GiB: 1 GiB + 0.5 GiB a sample beside a context of
/// half a GiB, steps of 100 ms.
class JobTuningTest : public SmallTraining {
 protected:
  JobSpec job(std::int64_t batch, std::int64_t steps, Bytes need) const {
    JobSpec job = plain_job(need, SimTime{0}, milliseconds{100} * steps);
    job.demand.batch = batch;
    job.model = JobModel{shared_, 0};
    job.phases.front().steps = steps;
    job.phases.front().point = {batch};
    return job;
  }
  JobSpec tuned(std::int64_t batch, std::int64_t steps, Bytes need, const PolicyChoice& choice) const {
    JobSpec one = job(batch, steps, need);
    const ParameterSpace bounds = workload.parameters();
    one.tuner = JobTuner{choice.use, [=] { return builtin_policies()->tuners.make(choice, bounds); }, bounds};
    return one;
  }
  JobSpec scripted(std::int64_t batch, std::int64_t steps,
                   std::map<std::int64_t, TunerAnswer> answers) const {
    JobSpec one = job(batch, steps, 1_GiB);
    one.tuner =
        JobTuner{"scripted", [=] { return std::make_unique<Scripted>(answers); }, workload.parameters()};
    return one;
  }
  static JobQueueSetup on_card(std::vector<JobSpec> jobs) {
    JobQueueSetup queue{.cluster = cards_of(8_GiB), .jobs = std::move(jobs)};
    queue.steps = StepFidelity{.contexts = {512_MiB}, .allocator = {}};
    queue.keep_moments = true;
    return queue;
  }

 private:
  std::shared_ptr<const LinearWorkload> shared_ = std::make_shared<LinearWorkload>(workload);
};

PolicyChoice threshold(std::int64_t step) {
  return {"threshold-step", "", {{"step", step, {}}, {"adjustment_frequency", std::int64_t{5}, {}}}, ""};
}

Bytes most_held(const JobQueueRun& run) {
  Bytes most = 0;
  for (const CardMoment& moment : run.moments) most = std::max(most, moment.used);
  return most;
}

// The one decision for each change, whoever performs the steps.
TEST_F(JobTuningTest, AloneATunerMakesTheChangesOfItsTraining) {
  setup.iterations = 200;
  std::size_t changes = 0;
  for (const auto& [use, profile] : {std::pair{"threshold-step", ""},
                                     {"predictive", ""},
                                     {"dual-optimizer", "settled"},
                                     {"dual-optimizer", "blind"}}) {
    const PolicyChoice choice{use, profile, {}, ""};
    const TrainingRun training =
        run_training(setup, [&] { return builtin_policies()->tuners.make(choice, workload.parameters()); });
    const JobQueueRun run = run_queue(on_card({tuned(4, 200, 6_GiB, choice)}), "exclusive");
    ASSERT_EQ(run.jobs[0].outcome, JobOutcome::completed) << use;
    const JobTuning& tuning = *run.jobs[0].tuning;
    std::vector<std::tuple<std::int64_t, Point, std::string>> expected;
    std::vector<std::tuple<std::int64_t, Point, std::string>> made;
    for (const Adjustment& one : training.adjustments)
      expected.emplace_back(one.iteration, one.to, one.reason);
    for (const TunedMoment& one : tuning.course) {
      if (one.kind == TunedMoment::Kind::change) made.emplace_back(one.step, one.point, one.reason);
    }
    EXPECT_EQ(made, expected) << use << ' ' << profile;
    EXPECT_EQ(tuning.changes, std::ssize(made));
    EXPECT_EQ(tuning.failed_steps,
              std::ranges::count(training.iterations, StepResult::oom, &IterationRecord::result));
    EXPECT_EQ(tuning.course.back().point, training.final_point);
    // The process of a job also builds its model, one cudaMalloc that a training run does not time.
    EXPECT_LT(run.end - training.duration, milliseconds{1}) << use;
    EXPECT_GE(run.end, training.duration) << use;
    changes += made.size();
  }
  EXPECT_GE(changes, 4u);
}

// Each was promised 3 GiB of 8; alone one would grow to a batch of 12, of 7.5 GiB.
TEST_F(JobTuningTest, TwoThatGrowShareOneCardAndRunOutOfMemory) {
  const JobSpec one = tuned(2, 200, 3_GiB, threshold(2));
  const JobQueueRun alone = run_queue(on_card({one}), "best-effort");
  const JobQueueRun both = run_queue(on_card({one, one}), "best-effort");
  EXPECT_EQ(alone.jobs[0].tuning->failed_steps, 0);
  EXPECT_TRUE(alone.jobs[0].overran);
  EXPECT_EQ(both.overcommits, 0);
  std::int64_t failed = 0;
  for (const JobRecord& job : both.jobs) {
    EXPECT_EQ(job.outcome, JobOutcome::completed);
    EXPECT_EQ(job.ooms, 0);
    EXPECT_EQ(job.need, 3_GiB);
    EXPECT_LE(job.tuning->course.back().point[0], alone.jobs[0].tuning->course.back().point[0]);
    failed += job.tuning->failed_steps;
  }
  EXPECT_GT(failed, 0);
  EXPECT_LE(most_held(both), 8_GiB);
}

// A batch of 16 takes 9 GiB: ten failures in a row at one point are the end of an attempt, as of a training.
TEST_F(JobTuningTest, AttemptsEndWhereTheTunerDoesNotMove) {
  OptionMap fail;
  fail.set("on_oom", std::string{"fail"});
  const JobQueueRun run =
      run_queue(on_card({tuned(16, 50, 1_GiB, {"fixed", "", {}, ""})}), "best-effort", fail);
  const JobRecord& job = run.jobs[0];
  EXPECT_EQ(job.outcome, JobOutcome::out_of_memory);
  EXPECT_EQ(job.ooms, 1);
  EXPECT_EQ(job.tuning->failed_steps, kMostFailuresInARow);
  EXPECT_EQ(job.tuning->samples, 0);
  EXPECT_THAT(job.reason,
              testing::HasSubstr("Its tuner ended the run: 10 steps in a row ran out of memory at "
                                 "batch 16. It wanted 512.0 MiB beside its 8.0 GiB"));
}

TEST_F(JobTuningTest, TheNextAttemptBeginsAnewAtHalfTheBatch) {
  OptionMap smaller;
  smaller.set("on_oom", std::string{"smaller"});
  const JobQueueRun run =
      run_queue(on_card({tuned(16, 50, 1_GiB, {"fixed", "", {}, ""})}), "best-effort", smaller);
  const JobRecord& job = run.jobs[0];
  EXPECT_EQ(job.outcome, JobOutcome::completed);
  EXPECT_EQ(job.split, (BatchSplit{8, 2}));
  EXPECT_EQ(job.tuning->failed_steps, kMostFailuresInARow);
  EXPECT_EQ(job.tuning->samples, 50 * 2 * 8);  // of the last attempt alone
  std::vector<Point> starts;
  for (const TunedMoment& one : job.tuning->course) {
    if (one.kind == TunedMoment::Kind::start) starts.push_back(one.point);
  }
  EXPECT_THAT(starts, testing::ElementsAre(Point{16}, Point{8}));
}

// 12 samples fit, 16 do not: the failed step is run again at once, and is no step of its own.
TEST_F(JobTuningTest, AFailedStepMayBeRunAgain) {
  const JobQueueRun run = run_queue(
      on_card({scripted(12, 10, {{3, {.delta = {4}}}, {4, {.delta = {-4}, .retry = true}}})}), "best-effort");
  const JobTuning& tuning = *run.jobs[0].tuning;
  EXPECT_EQ(run.jobs[0].outcome, JobOutcome::completed);
  EXPECT_EQ(tuning.failed_steps, 1);
  EXPECT_EQ(tuning.samples, 4 * 12 + 6 * 8);  // its answer for step 4 comes twice: to 12, and then to 8
  EXPECT_EQ(tuning.changes, 3);
}

TEST_F(JobTuningTest, ATunerThatCannotGoOnEndsItsJobAlone) {
  const JobQueueRun run = run_queue(
      on_card({scripted(2, 10, {{5, {.end_run = true, .reason = "it is lost"}}}), job(2, 20, 3_GiB)}),
      "best-effort");
  EXPECT_EQ(run.jobs[0].outcome, JobOutcome::gave_up);
  EXPECT_EQ(run.jobs[0].reason, "Its tuner ended the run: it is lost.");
  EXPECT_EQ(run.jobs[0].tuning->samples, 5 * 2);
  EXPECT_EQ(run.jobs[0].ooms, 0);
  EXPECT_EQ(run.jobs[1].outcome, JobOutcome::completed);
}

TEST_F(JobTuningTest, AnEmptiedCacheGoesBackToTheCard) {
  const JobQueueRun run = run_queue(
      on_card({scripted(8, 20, {{5, {.delta = {-6}}}, {10, {.empty_cache = true}}})}), "best-effort");
  std::vector<Bytes> held;
  for (const HoldingMoment& moment : run.holdings) held.push_back(moment.used);
  // Context and weights; a step of 8 samples; the cache emptied, and a step of 2; the end.
  EXPECT_THAT(held, testing::ElementsAre(1_GiB, 5632_MiB, 1_GiB, 2560_MiB, 0));
}

// The limit of the promise is what the tuner sees as its card.
TEST_F(JobTuningTest, WherePromisesAreEnforcedNobodyTakesMore) {
  OptionMap enforced;
  enforced.set("enforce_promise", true);
  const JobSpec one = tuned(2, 200, 4_GiB, threshold(1));
  const JobQueueRun run = run_queue(on_card({one, one}), "best-effort", enforced);
  for (const JobRecord& job : run.jobs) {
    EXPECT_EQ(job.outcome, JobOutcome::completed);
    EXPECT_EQ(job.tuning->failed_steps, 0);
    EXPECT_FALSE(job.overran);
    EXPECT_GT(job.tuning->changes, 0);
    EXPECT_LE(job.most_used, 4_GiB);
  }
}

TEST_F(JobTuningTest, AnEnforcedPromiseStopsJobsWithoutATuner) {
  OptionMap enforced;
  enforced.set("enforce_promise", true);
  enforced.set("on_oom", std::string{"fail"});
  for (const bool steps : {true, false}) {
    JobQueueSetup queue = on_card({plain_job(2_GiB, SimTime{0}, seconds{10})});
    queue.jobs.front().phases.front().fixed_use = 3_GiB;
    if (!steps) queue.steps.reset();
    const JobQueueRun run = run_queue(queue, "best-effort", enforced);
    EXPECT_EQ(run.jobs[0].outcome, JobOutcome::out_of_memory) << steps;
    EXPECT_THAT(run.jobs[0].reason, testing::HasSubstr("where it may take the 2.0 GiB it was promised."));
  }
}

// Steps performed one by one are those that are counted where they repeat.
TEST_F(JobTuningTest, ATunerThatNeverMovesChangesNoFigure) {
  const JobQueueRun plain = run_queue(on_card({job(4, 100, 3_GiB), job(4, 100, 3_GiB)}), "best-effort");
  const JobSpec still = tuned(4, 100, 3_GiB, {"fixed", "", {}, ""});
  const JobQueueRun fixed = run_queue(on_card({still, still}), "best-effort");
  EXPECT_EQ(fixed.end, plain.end);
  EXPECT_NEAR(fixed.byte_seconds / plain.byte_seconds, 1, 1e-12);  // a sum of other parts
}

TEST_F(JobTuningTest, ATunerWithoutStepsIsRefused) {
  JobQueueSetup declared = on_card({tuned(4, 10, 3_GiB, threshold(1))});
  declared.steps.reset();
  EXPECT_THROW(run_queue(declared, "best-effort"), InputError);
  JobQueueSetup flat = on_card({tuned(4, 10, 3_GiB, threshold(1))});
  flat.jobs.front().model.reset();
  EXPECT_THROW(run_queue(flat, "best-effort"), InputError);
}

}  // namespace
}  // namespace vramlab
