// Jobs that perform their steps on shared cards, each with an allocator of its own.
#include <algorithm>
#include <array>

#include <gmock/gmock.h>

#include "models/linear.hpp"
#include "sim/runs/job_process.hpp"
#include "sim/runs/step_runner.hpp"
#include "tests/runs/queue_rig.hpp"

namespace vramlab {
namespace {

constexpr Bytes kContext = 512_MiB;

std::shared_ptr<const WorkloadModel> linear(std::vector<double> first_steps = {}) {
  LinearSpec spec{.fixed = 1000_MiB, .per_sample = 500_MiB, .resident = 200_MiB};
  spec.first_steps = std::move(first_steps);
  spec.time.floor_seconds = 0.1;
  return std::make_shared<LinearWorkload>(spec);
}

/// `steps` steps of 100 ms at `batch`; declares exactly what they reserve, context included.
JobSpec linear_job(std::int64_t batch, std::int64_t steps, SimTime arrival = SimTime{0}) {
  JobSpec job = plain_job(kContext + 1000_MiB, arrival, milliseconds{100} * steps);
  job.demand.per_sample = 500_MiB;
  job.demand.batch = batch;
  job.model = JobModel{linear(), 0};
  job.phases.front().steps = steps;
  job.phases.front().point = {batch};
  return job;
}

JobQueueSetup on_card(Bytes total, std::vector<JobSpec> jobs) {
  JobQueueSetup setup{.cluster = cards_of(total), .jobs = std::move(jobs)};
  setup.steps = StepFidelity{.contexts = {kContext}, .allocator = {}};
  setup.keep_moments = true;
  return setup;
}

Bytes most_used(const JobQueueRun& run) {
  Bytes most = 0;
  for (const CardMoment& moment : run.moments) most = std::max(most, moment.used);
  return most;
}

// ../shared/data/device/h100-concurrent-processes.txt: steps per second of 1 to 4 processes on one H100.
TEST(JobSteps, StretchAgreesWithMeasuredProcessesOnOneCard) {
  constexpr std::array kGpt2{22.792, 11.80, 7.914, 5.930};
  constexpr std::array kSuperResolution{30.459, 24.770, 17.252, 13.104};
  const auto error = [](const auto& measured, std::int64_t busy, std::size_t n) {
    const double slower = static_cast<double>(stretch_milli(busy * static_cast<std::int64_t>(n))) / 1000;
    return std::abs(measured[0] / slower / measured[n - 1] - 1);
  };
  for (std::size_t n = 1; n <= 4; ++n) {
    EXPECT_LT(error(kGpt2, 961, n), 0.006) << n;
    EXPECT_LT(error(kSuperResolution, 590, n), 0.05) << n;
    EXPECT_LT(error(kGpt2, 1000, n), 0.045) << n;  // the default
  }
}

TEST(JobSteps, AloneAJobTakesItsStepsAndTheDriversTime) {
  const JobQueueRun run = run_queue(on_card(8_GiB, {linear_job(4, 50)}), "best-effort");
  ASSERT_EQ(run.jobs[0].outcome, JobOutcome::completed);
  // The same steps one by one, in the runner of trainings.
  const auto model = linear();
  StepRunner runner{*model, {.card_total = 8_GiB, .context_bytes = kContext, .allocator = {}}};
  SimTime sum{0};
  for (int i = 0; i < 50; ++i) sum += runner.run({4}).duration;
  // Building takes one cudaMalloc that the runner does not time.
  EXPECT_GE(run.end, sum);
  EXPECT_LT(run.end - sum, milliseconds{1});
  EXPECT_EQ(most_used(run), kContext + static_cast<Bytes>(runner.view().peak_reserved));
  EXPECT_EQ(most_used(run), kContext + 1000_MiB + 4 * 500_MiB);
}

TEST(JobSteps, StepsOfJobsOnOneCardStretch) {
  const JobQueueSetup setup = on_card(8_GiB, {linear_job(2, 100), linear_job(2, 100), linear_job(2, 100)});
  EXPECT_NEAR(to_seconds(run_queue(setup, "best-effort").end), 30, 0.1);
  JobQueueSetup light = setup;
  for (JobSpec& job : light.jobs) job.busy_milli = 600;
  EXPECT_NEAR(to_seconds(run_queue(light, "best-effort").end), 18, 0.1);
  JobQueueSetup idle = setup;
  for (JobSpec& job : idle.jobs) job.busy_milli = 300;
  EXPECT_NEAR(to_seconds(run_queue(idle, "best-effort").end), 10, 0.1);
}

// 5 s alone, 10 s beside another (half speed, 5 s of its work), 5 s alone.
TEST(JobSteps, AJobThatComesAndGoesSlowsTheOtherDownMeanwhile) {
  const JobQueueRun run =
      run_queue(on_card(8_GiB, {linear_job(2, 150), linear_job(2, 50, seconds{5})}), "best-effort");
  EXPECT_NEAR(to_seconds(run.jobs[1].end), 15, 0.1);
  EXPECT_NEAR(to_seconds(run.jobs[0].end), 20, 0.1);
}

TEST(JobSteps, AStrangerTakesMemoryAndTime) {
  JobQueueSetup setup = on_card(8_GiB, {linear_job(2, 100)});
  setup.strangers = {{.card = 0, .from = seconds{2}, .to = seconds{6}, .bytes = 1_GiB, .busy_milli = 1000}};
  EXPECT_NEAR(to_seconds(run_queue(setup, "best-effort").end), 12, 0.1);
}

// Both were promised what they declare, 3 GiB of 8; each takes 4.5 GiB.
TEST(JobSteps, WhoTakesMoreThanDeclaredLetsAnotherRunOut) {
  JobSpec greedy = linear_job(6, 20);
  greedy.demand.fixed = 3_GiB;
  greedy.demand.per_sample = 0;
  OptionMap options;
  options.set("on_oom", std::string{"fail"});
  JobQueueSetup setup = on_card(8_GiB, {greedy, greedy});
  setup.start_up = seconds{1};
  const JobQueueRun run = run_queue(setup, "best-effort", options);
  EXPECT_EQ(run.jobs[0].outcome, JobOutcome::completed);
  EXPECT_EQ(run.jobs[1].outcome, JobOutcome::out_of_memory);
  EXPECT_EQ(run.jobs[1].wasted, seconds{1});
  EXPECT_EQ(run.overcommits, 0);
  EXPECT_LE(most_used(run), 8_GiB);
}

TEST(JobSteps, AfterAnOomItGoesOnSmallerOrWaits) {
  JobSpec greedy = linear_job(6, 20);
  greedy.demand.fixed = 2_GiB;
  greedy.demand.per_sample = 1_MiB;
  for (const auto& [what, batch] : {std::pair{"smaller", 3}, {"requeue", 6}}) {
    OptionMap options;
    options.set("on_oom", std::string{what});
    const JobQueueRun run = run_queue(on_card(8_GiB, {greedy, greedy}), "best-effort", options);
    EXPECT_EQ(run.jobs[1].outcome, JobOutcome::completed) << what;
    EXPECT_GE(run.jobs[1].ooms, 1) << what;
    EXPECT_EQ(run.jobs[1].split.batch, batch) << what;
    EXPECT_EQ(run.jobs[1].split.effective(), 6) << what;
  }
}

// Half the batch, twice the micro-batches: the model says that a step takes 100 ms whatever its batch.
TEST(JobSteps, ASmallerBatchTakesMoreSteps) {
  JobSpec job = linear_job(8, 10);
  OptionMap options;
  options.set("degrade", std::string{"degrade-first"});
  const JobQueueRun run = run_queue(on_card(4_GiB, {job}), "best-effort", options);
  ASSERT_EQ(run.jobs[0].split, (BatchSplit{4, 2}));
  EXPECT_NEAR(to_seconds(run.end), 2, 0.05);
}

// What a job without a model frees stays cached, as in PyTorch: the other's second phase finds no room.
TEST(JobSteps, FreedMemoryStaysCached) {
  JobSpec falls = plain_job(6_GiB, SimTime{0}, seconds{10});
  falls.phases = {{.duration = seconds{10}, .fixed_use = 6_GiB},
                  {.duration = seconds{10}, .fixed_use = 1_GiB}};
  const JobQueueRun steps = run_queue(on_card(8_GiB, {falls}), "best-effort");
  JobQueueSetup declared = on_card(8_GiB, {falls});
  declared.steps.reset();
  const auto used_in_second_phase = [](const JobQueueRun& run) {
    Bytes used = 0;
    for (const CardMoment& moment : run.moments) {
      if (moment.time < seconds{11}) used = moment.used;
    }
    return used;
  };
  EXPECT_EQ(used_in_second_phase(steps), 6_GiB);
  EXPECT_EQ(used_in_second_phase(run_queue(declared, "best-effort")), 1_GiB);
}

TEST(JobSteps, AJobOnTwoCardsHasAProcessOnEach) {
  JobSpec job = linear_job(2, 10);
  job.demand.cards = 2;
  JobQueueSetup setup = on_card(8_GiB, {job});
  setup.cluster = cards_of(8_GiB, 2);
  const JobQueueRun run = run_queue(setup, "best-effort");
  for (const CardId card : {0u, 1u}) {
    EXPECT_TRUE(std::any_of(run.moments.begin(), run.moments.end(), [&](const CardMoment& moment) {
      return moment.card == card && moment.used == kContext + 2000_MiB;
    })) << card;
  }
}

// A process that is settled asks the driver for nothing, in a card that has nothing left, for ever.
TEST(JobProcess, SettledStepsNeedNothingMoreOfTheCard) {
  for (const auto& first_steps : {std::vector<double>{}, {1.5, 0.8}}) {
    const auto model = linear(first_steps);
    SimulatedCard card{24_GiB, 0};
    JobProcess process{card, kContext, {}};
    ASSERT_TRUE(process.open());
    ASSERT_TRUE(process.run(model->build(), 1).ok);
    std::uint64_t key = 2;
    for (std::size_t i = 0; i < first_steps.size(); ++i) {
      EXPECT_FALSE(process.run(model->first_step({4}, i), key++).settled);
    }
    int steps = 0;
    while (!process.run(model->step({4}), key).settled) ASSERT_LT(++steps, 5);
    card.set_others(card.free());
    const Holding held = process.holding();
    for (int i = 0; i < 20; ++i) {
      const JobProcess::Step step = process.run(model->step({4}), key);
      ASSERT_TRUE(step.ok && step.settled);
      EXPECT_EQ(step.driver_time, SimTime{0});
      EXPECT_EQ(process.holding().reserved, held.reserved);
    }
  }
}

TEST(JobProcess, GivesEverythingBack) {
  SimulatedCard card{4_GiB, 0};
  {
    JobProcess process{card, kContext, {}};
    ASSERT_TRUE(process.open());
    const auto model = linear();
    ASSERT_TRUE(process.run(model->build(), 1).ok);
    EXPECT_FALSE(process.run(model->step({8}), 2).ok);  // 5,000 MiB
    EXPECT_EQ(process.holding().reserved, 4_GiB - card.free());
  }
  EXPECT_EQ(card.free(), 4_GiB);
}

}  // namespace
}  // namespace vramlab
