// The rules of the queue (docs/job-queue.md) on clusters small enough to work every start out by hand.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "tests/runs/queue_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// First starts in seconds, in the order of the jobs.
std::vector<std::int64_t> starts(const JobQueueRun& run) {
  std::vector<std::int64_t> list;
  for (const JobRecord& job : run.jobs) list.push_back(job.first_start / seconds{1});
  return list;
}

// A card's number is compared with the node's own cards: card 1 is not on the node of card 0.
TEST(QueueRules, WhatACardOfAnotherNodeOffersDoesNotCount) {
  JobQueueSetup setup;
  setup.cluster.pools = {{48_GiB}, {24_GiB}};
  setup.cluster.nodes = {{.pool = 0, .first = 0, .count = 1}, {.pool = 1, .first = 1, .count = 1}};
  setup.jobs = {plain_job(30_GiB, SimTime{0}, minutes{1})};
  const JobRecord job = run_queue(setup, "backfill", {{"gpu_device", std::int64_t{1}, {}}}).jobs[0];
  EXPECT_EQ(job.outcome, JobOutcome::refused);
  EXPECT_EQ(job.reason, "Needs 30.0 GiB; the largest card offers 24.0 GiB: it can never fit.");
}

// 16 samples of 2 GiB are 32 GiB; half of them fit.
TEST(QueueRules, AJobThatMayNotShrinkIsMeasuredByItsWholeBatch) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(0, SimTime{0}, minutes{1})};
  setup.jobs[0].demand.per_sample = 2_GiB;
  setup.jobs[0].demand.batch = 16;
  const JobRecord whole = run_queue(setup, "backfill", {{"degrade", "never", {}}}).jobs[0];
  EXPECT_EQ(whole.outcome, JobOutcome::refused);
  EXPECT_EQ(whole.reason, "Needs 32.0 GiB; the largest card offers 24.0 GiB: it can never fit.");
  const JobRecord halved = run_queue(setup, "backfill", {{"degrade", "degrade-first", {}}}).jobs[0];
  EXPECT_EQ(halved.outcome, JobOutcome::completed);
  EXPECT_EQ(halved.split, (BatchSplit{8, 2}));
  EXPECT_EQ(halved.need, 16_GiB);
}

// 8 + 4 GiB exceed a quota of 10, though the card has room.
TEST(QueueRules, SaysThatAQuotaIsPromised) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.cluster.quotas = {std::nullopt, 10_GiB};
  setup.jobs = {plain_job(8_GiB, SimTime{0}, minutes{10}), plain_job(4_GiB, SimTime{0}, minutes{10})};
  for (JobSpec& job : setup.jobs) job.demand.account = 1;
  const JobRecord job = run_queue(setup, "backfill", {{"wait_timeout_s", 60.0, {}}}).jobs[1];
  EXPECT_EQ(job.outcome, JobOutcome::wait_timeout);
  EXPECT_EQ(job.end, seconds{60});
  EXPECT_EQ(job.reason,
            "no memory within 60 s: needs 4.0 GiB; the freest card, 0, has 16.0 GiB of 24.0 GiB to give; "
            "8.0 GiB of its quota of 10.0 GiB are promised.");
}

// 4 GiB on each of two cards count as 8: 4 + 8 exceed the quota of 10.
TEST(QueueRules, EveryCardOfAJobCountsAgainstItsQuota) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB, 2)};
  setup.cluster.quotas = {std::nullopt, 10_GiB};
  setup.jobs = {plain_job(4_GiB, SimTime{0}, seconds{100}), plain_job(4_GiB, SimTime{0}, seconds{100})};
  setup.jobs[1].demand.cards = 2;
  for (JobSpec& job : setup.jobs) job.demand.account = 1;
  EXPECT_THAT(starts(run_queue(setup, "backfill")), ElementsAre(0, 100));
}

// EASY backfill (Lifka 1995): the first job of the queue, 22 GiB, gets card 1 at 100 s, where the 20 GiB of
// job 1 end; beside it 2 GiB are left there. Who is behind it may use card 0, those 2 GiB, or end by then.
TEST(QueueRules, BackfillKeepsTheReservedCardsRoomAndNothingElse) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB, 2)};
  setup.jobs = {plain_job(20_GiB, seconds{0}, seconds{1000}), plain_job(20_GiB, seconds{0}, seconds{100}),
                plain_job(22_GiB, seconds{1}, seconds{50}),   plain_job(4_GiB, seconds{2}, seconds{500}),
                plain_job(3_GiB, seconds{3}, seconds{500}),   plain_job(2_GiB, seconds{4}, seconds{500}),
                plain_job(2_GiB, seconds{5}, seconds{90}),    plain_job(2_GiB, seconds{6}, seconds{95})};
  const JobQueueRun run = run_queue(setup, "backfill");
  EXPECT_THAT(starts(run), ElementsAre(0, 0, 100, 2, 150, 4, 5, 150));
  EXPECT_THAT(run.jobs[2].cards, ElementsAre(1u));
  EXPECT_THAT(run.jobs[3].cards, ElementsAre(0u));
  EXPECT_THAT(run.jobs[5].cards, ElementsAre(1u));
}

// A job that uses 5 of the 20 GiB promised to it leaves all 20 when it ends: then 22 fit, and 2 beside them.
TEST(QueueRules, BackfillReckonsWithPromisesNotWithUse) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(20_GiB, seconds{0}, seconds{100}), plain_job(22_GiB, seconds{1}, seconds{50}),
                plain_job(2_GiB, seconds{2}, seconds{50})};
  setup.jobs[0].phases[0].fixed_use = 5_GiB;
  EXPECT_THAT(starts(run_queue(setup, "backfill")), ElementsAre(0, 100, 2));
}

// With a point of priority for each 60 s, one that has waited 600 s passes one with 5 points that came late.
TEST(QueueRules, WaitingRaisesThePriority) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(20_GiB, seconds{0}, seconds{600}), plain_job(20_GiB, seconds{0}, seconds{100}),
                plain_job(20_GiB, seconds{590}, seconds{100})};
  setup.jobs[2].demand.priority = 5;
  EXPECT_THAT(starts(run_queue(setup, "strict-fifo")), ElementsAre(0, 700, 600));
  EXPECT_THAT(starts(run_queue(setup, "strict-fifo", {{"ageing_s", 60.0, {}}})), ElementsAre(0, 600, 700));
}

// 4 GiB declared and 7 used: the second attempt is promised 8.
TEST(QueueRules, ANeedIsRaisedByTheFactor) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(4_GiB, SimTime{0}, minutes{1})};
  setup.jobs[0].phases[0].fixed_use = 7_GiB;
  const JobRecord job = run_queue(setup, "backfill",
                                  {{"enforce_promise", true, {}},
                                   {"on_oom", "requeue", {}},
                                   {"oom_retries", std::int64_t{1}, {}},
                                   {"oom_raise", 2.0, {}}})
                            .jobs[0];
  EXPECT_EQ(job.outcome, JobOutcome::completed);
  EXPECT_EQ(job.ooms, 1);
  EXPECT_EQ(job.need, 8_GiB);
}

// Two jobs a card. At 50 s the worker looks at the 14 GiB, which do not fit into 10, and starts the 5 behind
// them; then the card is full, and the 14 go behind the 13. A job of another priority keeps its place.
TEST(QueueRules, OfTwoFifosAJobThatWasPassedGoesToTheBackOfItsOwnPriority) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(14_GiB, seconds{0}, seconds{100}),  plain_job(9_GiB, seconds{0}, seconds{50}),
                plain_job(20_GiB, seconds{10}, seconds{10}),  plain_job(14_GiB, seconds{10}, seconds{10}),
                plain_job(5_GiB, seconds{10}, seconds{1000}), plain_job(13_GiB, seconds{10}, seconds{10})};
  setup.jobs[2].demand.priority = -1;
  const JobQueueRun run = run_queue(
      setup, "backfill", {{"order", "two-fifos", {}}, {"max_concurrent_jobs", std::int64_t{2}, {}}});
  EXPECT_THAT(starts(run), ElementsAre(0, 0, 1050, 110, 50, 100));
}

// 100 s of its first phase and 50 s of its second, each admitted by itself.
TEST(QueueRules, AnOwnerDiesAfterTheRunningTimeOfAllPhases) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(4_GiB, seconds{10}, seconds{100})};
  JobSpec& job = setup.jobs[0];
  job.phases = {{.duration = seconds{100}, .need = 4_GiB}, {.duration = seconds{100}, .need = 6_GiB}};
  job.crash_after = seconds{150};
  const JobQueueRun run = run_queue(setup, "backfill", {{"per_phase", true, {}}});
  EXPECT_EQ(run.jobs[0].outcome, JobOutcome::crashed);
  EXPECT_EQ(run.jobs[0].end, seconds{160});
}

// Killed 1 s after its admission at 10 s, when it takes its memory on two cards.
TEST(QueueRules, WhatAKilledAttemptRanIsWastedOnEveryCard) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB, 2)};
  setup.start_up = seconds{1};
  setup.jobs = {plain_job(16_GiB, seconds{0}, minutes{1}), plain_job(14_GiB, seconds{10}, minutes{1})};
  setup.jobs[1].demand.cards = 2;
  const JobQueueRun run = run_queue(setup, "no-admission", {{"on_oom", "fail", {}}});
  EXPECT_EQ(run.jobs[1].outcome, JobOutcome::out_of_memory);
  EXPECT_EQ(run.jobs[1].wasted, seconds{2});
}

TEST(QueueRules, APhaseLasts) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(1_GiB, SimTime{0}, SimTime{0})};
  EXPECT_THROW(run_queue(setup, "backfill"), InputError);
  setup.jobs[0].phases[0].duration = SimTime{1};
  EXPECT_EQ(run_queue(setup, "backfill").jobs[0].end, SimTime{1});
}

// 12 GiB for 100 s, 10 for 40 s and for 10 s, 1 for 5 s. Above 90 % of 24 GiB are 22 and 23, from 20 to 60 s
// and from 70 to 80 s: two alerts, though others come and go meanwhile.
TEST(QueueRules, TheBooksCountBytesTimesSecondsAndAlerts) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(12_GiB, seconds{10}, seconds{100}), plain_job(10_GiB, seconds{20}, seconds{40}),
                plain_job(10_GiB, seconds{70}, seconds{10}), plain_job(1_GiB, seconds{30}, seconds{5})};
  const JobQueueRun run = run_queue(setup, "backfill");
  EXPECT_THAT(starts(run), ElementsAre(10, 20, 70, 30));
  EXPECT_DOUBLE_EQ(run.byte_seconds, 1705.0 * static_cast<double>(1_GiB));
  EXPECT_EQ(run.alerts, 2);
}

}  // namespace
}  // namespace vramlab
