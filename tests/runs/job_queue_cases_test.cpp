// The reported cases of shared-GPU queues, K4-01 to K4-10 (docs/reported-cases.md), with their values.
#include <algorithm>

#include <gmock/gmock.h>

#include "models/job_estimate.hpp"
#include "tests/runs/queue_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kReserving{"strict-fifo", "best-effort", "backfill"};

std::int64_t count(const JobQueueRun& run, JobOutcome outcome) {
  return std::count_if(run.jobs.begin(), run.jobs.end(),
                       [&](const JobRecord& job) { return job.outcome == outcome; });
}

// The published example: 2,000 MB at batch 8, × 2.5 in training.
JobDemand seed_job(std::int64_t batch) {
  JobDemand demand;
  demand.per_sample = estimated_bytes({.type = "transformer", .size = "small", .batch = 1});
  demand.batch = batch;
  demand.effective = batch;
  return demand;
}

TEST(JobQueueCases, K4_01_TheTableGivesTheSeedsFigures) {
  const auto mib = [](std::int64_t batch, bool training) {
    return estimated_bytes({.type = "transformer", .size = "small", .batch = batch, .training = training}) /
           1_MiB;
  };
  EXPECT_EQ(mib(8, false), 2000u);
  EXPECT_EQ(mib(32, false), 8000u);
  EXPECT_EQ(mib(32, true), 20000u);
  EXPECT_EQ(mib(16, true), 10000u);
  EXPECT_EQ(mib(8, true), 5000u);
  // Always "medium", and no ratio below one.
  EXPECT_EQ(
      estimated_bytes({.size = "small", .batch = 1, .sequence = 1, .training = false, .faithful = true}),
      4000_MiB);
}

TEST(JobQueueCases, K4_01_KeepsTheEffectiveBatch) {
  EXPECT_EQ(exact_split(32, 8), (BatchSplit{8, 4}));
  EXPECT_EQ(exact_split(32, 4), (BatchSplit{4, 8}));
  EXPECT_EQ(halved_split(30, 7).effective(), 28);  // the original's loses two samples
  EXPECT_EQ(exact_split(30, 7), (BatchSplit{6, 5}));
}

TEST(JobQueueCases, K4_01_HalvesUntilItFits) {
  const auto run_of = [](std::int64_t batch, Bytes available, const std::string& accumulation) {
    JobQueueSetup setup{.cluster = cards_of(available)};
    setup.jobs = {plain_job(0, SimTime{0}, minutes{1})};
    setup.jobs[0].demand = seed_job(batch);
    const OptionMap options{{"degrade", "degrade-first"}, {"accumulation", accumulation}};
    return run_queue(setup, "best-effort", options).jobs[0];
  };
  EXPECT_EQ(run_of(32, 8000_MiB, "exact").split, (BatchSplit{8, 4}));
  EXPECT_EQ(run_of(32, 4999_MiB, "exact").split, (BatchSplit{4, 8}));
  EXPECT_EQ(run_of(30, 5000_MiB, "exact").split, (BatchSplit{6, 5}));
  EXPECT_EQ(run_of(30, 5000_MiB, "floor").split, (BatchSplit{7, 4}));  // 30 → 15 → 7
  EXPECT_EQ(run_of(30, 5000_MiB, "floor").outcome, JobOutcome::completed);
  EXPECT_EQ(run_of(32, 624_MiB, "exact").outcome, JobOutcome::refused);  // 625 at batch 1
}

// A job that reads free memory at t and allocates at t + 20 ms is passed by a second one in between.
TEST(JobQueueCases, K4_02_CheckThenAllocate) {
  JobQueueSetup setup{.cluster = cards_of(1024_MiB)};
  setup.start_up = milliseconds{20};
  setup.jobs = {plain_job(600_MiB, SimTime{0}, minutes{1}), plain_job(600_MiB, milliseconds{10}, minutes{1})};
  for (const std::string profile : {"faithful", "free-memory"}) {
    const JobQueueRun run = run_queue(setup, profile, {{"on_oom", "fail", {}}});
    EXPECT_EQ(run.overcommits, 1) << profile;
    EXPECT_EQ(run.most_active, 2) << profile;
    EXPECT_EQ(count(run, JobOutcome::out_of_memory), 1) << profile;
  }
  for (const std::string& profile : kReserving) {
    const JobQueueRun run = run_queue(setup, profile);
    EXPECT_EQ(run.overcommits, 0) << profile;
    EXPECT_EQ(run.most_active, 1) << profile;
    EXPECT_EQ(count(run, JobOutcome::completed), 2) << profile;
  }
}

TEST(JobQueueCases, K4_03_ThreeTimesTwelveOnTwentyFour) {
  std::vector<SimTime> arrivals{SimTime{0}, seconds{1}, seconds{2}};
  do {
    for (const bool same_tick : {false, true}) {
      JobQueueSetup setup{.cluster = cards_of(24_GiB)};
      for (const SimTime at : arrivals) {
        setup.jobs.push_back(plain_job(12_GiB, same_tick ? SimTime{0} : at, minutes{1}));
      }
      for (const std::string& profile : kReserving) {
        const JobQueueRun run = run_queue(setup, profile);
        EXPECT_EQ(run.most_active, 2);
        EXPECT_EQ(run.overcommits, 0);
        EXPECT_EQ(std::count_if(run.jobs.begin(), run.jobs.end(),
                                [](const JobRecord& job) { return job.first_start >= minutes{1}; }),
                  1);
      }
    }
  } while (std::next_permutation(arrivals.begin(), arrivals.end()));
}

TEST(JobQueueCases, K4_04_AStrangerOnTheCard) {
  JobQueueSetup setup{.cluster = cards_of(48_GiB)};
  setup.strangers = {{.card = 0, .bytes = 18_GiB}};
  for (const Bytes need : {25_GiB, 82_GiB, 29_GiB})
    setup.jobs.push_back(plain_job(need, seconds{1}, seconds{60}));
  for (const std::string& profile : kReserving) {
    const JobQueueRun run = run_queue(setup, profile);
    EXPECT_EQ(run.jobs[0].first_start, seconds{1});
    EXPECT_EQ(run.jobs[2].first_start, seconds{61});  // each fits alone in 30.0, not both
    EXPECT_EQ(run.jobs[1].outcome, JobOutcome::refused);
    EXPECT_EQ(run.jobs[1].end, seconds{1});
    EXPECT_THAT(run.jobs[1].reason, HasSubstr("82.0 GiB"));
    EXPECT_THAT(run.jobs[1].reason, HasSubstr("48.0 GiB"));
    EXPECT_EQ(run.jobs[0].ooms + run.jobs[2].ooms, 0);
  }
}

TEST(JobQueueCases, K4_05_NeverFitsIsSaidAtOnce) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(24_GiB + 1, seconds{5}, minutes{1}), plain_job(24_GiB, seconds{5}, minutes{1})};
  for (const PolicyProfile& profile : builtin_policies()->admitters.find("job-queue").profiles) {
    const JobQueueRun run = run_queue(setup, profile.name);
    EXPECT_EQ(run.jobs[0].outcome, JobOutcome::refused) << profile.name;
    EXPECT_EQ(run.jobs[0].end, seconds{5}) << profile.name;
    EXPECT_EQ(run.jobs[1].outcome, JobOutcome::completed) << profile.name;
  }
}

TEST(JobQueueCases, K4_06_TheOneCardWithRoomIsFoundAndAnExactFitFits) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB, 8)};
  for (CardId card = 0; card < 8; ++card) {
    const Bytes free = card == 6 ? 788_MiB : card == 7 ? 5381_MiB : 0;
    setup.strangers.push_back({.card = card, .bytes = 24_GiB - free});
  }
  setup.jobs = {plain_job(1024_MiB, seconds{1}, minutes{1})};
  for (const std::string rule : {"first", "best", "worst", "fragments"}) {
    EXPECT_THAT(run_queue(setup, "strict-fifo", {{"placement", rule, {}}}).jobs[0].cards,
                testing::ElementsAre(7u));
  }
  setup.strangers[7].bytes = 24_GiB - 1024_MiB;
  EXPECT_THAT(run_queue(setup, "strict-fifo").jobs[0].cards, testing::ElementsAre(7u));
}

TEST(JobQueueCases, K4_07_OrderPolicies) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(20_GiB, minutes{0}, minutes{100}), plain_job(12_GiB, minutes{1}, minutes{30}),
                plain_job(4_GiB, minutes{2}, minutes{10})};
  const OptionMap patient{{"wait_timeout_s", 0.0, {}}};
  for (const auto& [profile, third] :
       {std::pair{"strict-fifo", minutes{100}}, {"best-effort", minutes{2}}, {"backfill", minutes{2}}}) {
    const JobQueueRun run = run_queue(setup, profile, patient);
    EXPECT_EQ(run.jobs[1].first_start, minutes{100}) << profile;
    EXPECT_EQ(run.jobs[2].first_start, third) << profile;
  }
  // EASY: a job that would still hold at minute 100 what the second needs then may not pass it …
  setup.jobs[1].demand.fixed = 24_GiB;
  setup.jobs[2].phases[0].duration = minutes{99};
  EXPECT_EQ(run_queue(setup, "backfill", patient).jobs[1].first_start, minutes{100});
  EXPECT_EQ(run_queue(setup, "backfill", patient).jobs[2].first_start, minutes{130});
  // … which best effort lets through, and the second pays.
  EXPECT_EQ(run_queue(setup, "best-effort", patient).jobs[1].first_start, minutes{101});
}

TEST(JobQueueCases, K4_08_TwoPhasesInLockStep) {
  constexpr Bytes kCard = 10000_MiB;
  JobQueueSetup setup{.cluster = cards_of(kCard)};
  for (int i = 0; i < 2; ++i) {
    JobSpec job = plain_job(6800_MiB, SimTime{0}, seconds{120});
    job.phases = {{.duration = seconds{120}, .fixed_use = 0, .need = 0},
                  {.duration = seconds{10}, .fixed_use = 6800_MiB, .need = 6800_MiB}};
    setup.jobs.push_back(job);
  }
  const OptionMap two_slots{{"max_concurrent_jobs", std::int64_t{2}, {}}, {"on_oom", "fail", {}}};
  const JobQueueRun none = run_queue(setup, "no-admission", two_slots);
  EXPECT_EQ(count(none, JobOutcome::out_of_memory), 1);  // 136 %
  EXPECT_EQ(none.end, seconds{130});
  for (const std::string& profile : kReserving) {
    setup.keep_moments = true;
    const JobQueueRun run = run_queue(setup, profile, overlay(two_slots, {{"per_phase", true, {}}}));
    EXPECT_EQ(count(run, JobOutcome::completed), 2);
    EXPECT_EQ(run.end, seconds{140});
    EXPECT_EQ(run.jobs[0].waited, seconds{0});
    EXPECT_EQ(run.jobs[1].waited, seconds{10});
    for (const CardMoment& moment : run.moments) EXPECT_LE(moment.used, 6800_MiB);
  }
  // A promise for the whole job is safe too, and twice as slow.
  EXPECT_EQ(run_queue(setup, "strict-fifo", two_slots).end, seconds{260});
}

TEST(JobQueueCases, K4_09_AFractionIsNotBytes) {
  JobDemand tenth;
  tenth.share_milli = 100;
  EXPECT_EQ(tenth.need(1, 40'000'000'000), 4'000'000'000u);
  EXPECT_EQ(tenth.need(1, 80'000'000'000), 8'000'000'000u);

  // Two devices at 60 % are 1.2 of a quota of 1.0, though each fits its card.
  JobQueueSetup setup{.cluster = cards_of(10_GiB, 2)};
  setup.cluster.quotas = {std::nullopt, 10_GiB};
  setup.jobs = {plain_job(6_GiB, SimTime{0}, minutes{1}), plain_job(6_GiB, SimTime{0}, minutes{1})};
  for (JobSpec& job : setup.jobs) job.demand.cards = 2;
  setup.jobs[0].demand.account = 1;
  for (const std::string& profile : kReserving) {
    const JobQueueRun run = run_queue(setup, profile);
    EXPECT_EQ(run.jobs[0].outcome, JobOutcome::refused);
    EXPECT_THAT(run.jobs[0].reason, HasSubstr("12.0 GiB"));
    EXPECT_EQ(run.jobs[1].outcome, JobOutcome::completed);
    EXPECT_EQ(run.jobs[1].cards.size(), 2u);
  }
  // One after the other where the sum of both would exceed the quota.
  setup.jobs[1].demand.account = 1;
  for (JobSpec& job : setup.jobs) job.demand.cards = 1;
  EXPECT_EQ(run_queue(setup, "best-effort").jobs[1].first_start, minutes{1});
}

TEST(JobQueueCases, K4_10_WhatTheDriverKeepsIsNotForJobs) {
  const auto run_on = [](Bytes offered, std::int64_t share, Bytes need) {
    JobQueueSetup setup{.cluster = cards_of(offered)};
    for (int i = 0; i < 2; ++i) {
      JobSpec job = plain_job(need, SimTime{0}, minutes{1});
      job.demand.share_milli = share;
      if (share > 0) job.phases[0].fixed_use = need;
      setup.jobs.push_back(job);
    }
    return run_queue(setup, "best-effort", {{"on_oom", "fail", {}}});
  };
  // 16,384 MiB nominal: half of it is 8,192, both would be let in, and 16,200 are more than 15,934.
  const JobQueueRun nominal = run_on(16384_MiB - 450_MiB, 0, 8192_MiB);
  EXPECT_EQ(nominal.jobs[1].first_start, minutes{1});
  EXPECT_EQ(run_on(16384_MiB - 450_MiB, 0, 8100_MiB).jobs[1].first_start, minutes{1});
  // With 3 % kept, half of what is left is 7,946 MiB, and two of these fit side by side.
  const Bytes offered = 16384_MiB - 16384_MiB * 3 / 100;
  JobDemand half;
  half.share_milli = 500;
  EXPECT_EQ(half.need(1, offered) / 1_MiB, 7946u);
  EXPECT_EQ(run_on(offered, 500, 7946_MiB).most_active, 2);
}

const std::vector<std::string> kOrders{"two-fifos", "strict", "best-effort", "backfill"};

// The margin of 1,000 MiB that queues have unless told otherwise.
std::unique_ptr<Admitter> with_margin(const std::string& profile, const OptionMap& more = {}) {
  return builtin_policies()->admitters.make({"job-queue", profile, more, "/policies/0"});
}

// A share of 1 is the card, and what the empty card holds is not refused for the margin.
TEST(JobQueueMargin, AnEmptyCardGivesAllItHas) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(24_GiB, SimTime{0}, minutes{10}), plain_job(0, minutes{10}, minutes{10}),
                plain_job(24_GiB + 1, SimTime{0}, minutes{10})};
  setup.jobs[1].demand.share_milli = 1000;
  for (const PolicyProfile& profile : builtin_policies()->admitters.find("job-queue").profiles) {
    const JobQueueRun run = run_job_queue(setup, *with_margin(profile.name, {{"on_oom", "requeue", {}}}));
    const auto expected = profile.name == "faithful" ? JobOutcome::refused : JobOutcome::completed;
    EXPECT_EQ(run.jobs[0].outcome, expected) << profile.name;
    EXPECT_EQ(run.jobs[1].outcome, expected) << profile.name;
    EXPECT_EQ(run.jobs[2].outcome, JobOutcome::refused) << profile.name;
    if (profile.name != "faithful") continue;
    EXPECT_THAT(run.jobs[0].reason,
                HasSubstr("Needs 24.0 GiB; the largest card offers 24.0 GiB less a margin"));
  }
}

TEST(JobQueueMargin, IsKeptBesideJobsInBytesAndNotBetweenShares) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(12_GiB, SimTime{0}, minutes{1}), plain_job(12_GiB, SimTime{0}, minutes{1})};
  for (const std::string& profile : kReserving) {
    EXPECT_EQ(run_job_queue(setup, *with_margin(profile)).jobs[1].first_start, minutes{1}) << profile;
  }
  setup.jobs[1].demand.fixed = 12_GiB - 1000_MiB;
  for (const std::string& profile : kReserving) {
    EXPECT_EQ(run_job_queue(setup, *with_margin(profile)).jobs[1].first_start, minutes{0}) << profile;
  }
  for (JobSpec& job : setup.jobs) job.demand.share_milli = 500;
  for (const std::string& profile : kReserving) {
    EXPECT_EQ(run_job_queue(setup, *with_margin(profile)).jobs[1].first_start, minutes{0}) << profile;
  }
}

// 14 GiB for 4,000 s, and 16 samples of 1 GiB that come at 10 s: 10 GiB are left beside the first.
JobQueueSetup one_that_shrinks() {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(14_GiB, SimTime{0}, seconds{4000}), plain_job(0, seconds{10}, seconds{100})};
  setup.jobs[1].demand.per_sample = 1_GiB;
  setup.jobs[1].demand.batch = 16;
  return setup;
}

TEST(JobQueueDegradation, WaitFirstShrinksUnderEveryOrderOnceItsWaitIsOver) {
  for (const std::string& order : kOrders) {
    for (const double limit : {0.0, 300.0}) {  // without one, the published 300 s
      const JobQueueRun run =
          run_queue(one_that_shrinks(), "backfill",
                    {{"order", order, {}}, {"degrade", "wait-first", {}}, {"wait_timeout_s", limit, {}}});
      EXPECT_EQ(run.jobs[1].outcome, JobOutcome::completed) << order;
      EXPECT_EQ(run.jobs[1].first_start, seconds{310}) << order;
      EXPECT_EQ(run.jobs[1].split, (BatchSplit{8, 2})) << order;
      EXPECT_THAT(run.jobs[1].reason,
                  HasSubstr("16.0 GiB for batch 16 did not fit: runs at batch 8 with 8.0 GiB and 2"));
    }
  }
}

TEST(JobQueueDegradation, WhereNoSmallerBatchFitsItWaitsOnUnlessThereIsALimit) {
  JobQueueSetup setup = one_that_shrinks();
  setup.jobs[0].demand.fixed = 24_GiB;
  const OptionMap wait_first{{"degrade", "wait-first", {}}};
  for (const std::string& profile : kReserving) {
    const JobQueueRun patient = run_queue(setup, profile, wait_first);
    EXPECT_EQ(patient.jobs[1].first_start, seconds{4000}) << profile;
    EXPECT_EQ(patient.jobs[1].split, (BatchSplit{16, 1})) << profile;
    const JobQueueRun limited =
        run_queue(setup, profile, overlay(wait_first, {{"wait_timeout_s", 60.0, {}}}));
    EXPECT_EQ(limited.jobs[1].outcome, JobOutcome::wait_timeout) << profile;
    EXPECT_EQ(limited.jobs[1].end, seconds{70}) << profile;
    EXPECT_THAT(limited.jobs[1].reason,
                HasSubstr("no memory within 60 s: needs 16.0 GiB; the freest card, 0, "
                          "has 0 B of 24.0 GiB to give"));
  }
}

// Strict: the one that may shrink stands behind one that may not.
TEST(JobQueueDegradation, OneThatMayShrinkStillPassesNobodyUnderStrict) {
  JobQueueSetup setup = one_that_shrinks();
  setup.jobs.insert(setup.jobs.begin() + 1, plain_job(20_GiB, seconds{5}, seconds{100}));
  const OptionMap wait_first{{"degrade", "wait-first", {}}};
  const JobQueueRun strict = run_queue(setup, "strict-fifo", wait_first);
  EXPECT_EQ(strict.jobs[1].first_start, seconds{4000});
  EXPECT_EQ(strict.jobs[2].first_start, seconds{4000});  // beside it, in the 4 GiB that are left
  EXPECT_EQ(strict.jobs[2].split, (BatchSplit{4, 4}));
  EXPECT_EQ(run_queue(setup, "best-effort", wait_first).jobs[2].first_start, seconds{310});
  EXPECT_EQ(run_queue(setup, "backfill", wait_first).jobs[2].first_start, seconds{310});  // ends by 4,000
}

TEST(JobQueueWaiting, HasNoLimitUnlessOneIsGiven) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(20_GiB, SimTime{0}, minutes{60}), plain_job(20_GiB, SimTime{0}, minutes{60})};
  EXPECT_EQ(run_job_queue(setup, *with_margin("")).jobs[1].first_start, minutes{60});
  const JobRecord published =
      run_job_queue(setup, *with_margin("faithful", {{"job_timeout_s", 0.0, {}}})).jobs[1];
  EXPECT_EQ(published.outcome, JobOutcome::wait_timeout);
  EXPECT_EQ(published.waited, seconds{300});
}

// A queue that polls must end, too, where nothing will ever change.
TEST(JobQueueWaiting, ForEverEndsTheRunAndSaysWhatIsMissing) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.strangers = {{.card = 0, .bytes = 18_GiB}};
  setup.jobs = {plain_job(2_GiB, SimTime{0}, minutes{1}), plain_job(12_GiB, SimTime{0}, minutes{1}),
                plain_job(2_GiB, seconds{1}, minutes{1})};
  for (const double poll : {0.0, 5.0}) {
    const JobQueueRun run = run_queue(setup, "best-effort", {{"poll_s", poll, {}}});
    EXPECT_EQ(count(run, JobOutcome::completed), 2) << poll;
    EXPECT_EQ(run.jobs[1].outcome, JobOutcome::pending);
    EXPECT_EQ(run.jobs[1].reason, "needs 12.0 GiB; the freest card, 0, has 6.0 GiB of 24.0 GiB to give");
  }
}

TEST(JobQueueReasons, AKillNamesWhatWasWantedAndWhatWasFree) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.start_up = seconds{1};
  setup.jobs = {plain_job(16_GiB, SimTime{0}, minutes{1}), plain_job(14_GiB, SimTime{0}, minutes{1})};
  const JobQueueRun run = run_queue(setup, "no-admission", {{"on_oom", "fail", {}}});
  EXPECT_EQ(
      run.jobs[1].reason,
      "ran out of memory in attempt 1. It wanted 14.0 GiB on card 0, which had 8.0 GiB of 24.0 GiB free.");
}

TEST(JobQueueDevice, OneCardOrNone) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB, 3)};
  setup.jobs = {plain_job(20_GiB, SimTime{0}, minutes{1}), plain_job(20_GiB, SimTime{0}, minutes{1}),
                plain_job(1_GiB, SimTime{0}, minutes{1})};
  setup.jobs[2].demand.cards = 2;
  for (const std::string& profile : kReserving) {
    const JobQueueRun run = run_queue(setup, profile, {{"gpu_device", std::int64_t{1}, {}}});
    EXPECT_THAT(run.jobs[0].cards, testing::ElementsAre(1u)) << profile;
    EXPECT_EQ(run.jobs[1].first_start, minutes{1}) << profile;
    EXPECT_THAT(run.jobs[2].reason, HasSubstr("Asks for 2 cards of one node")) << profile;
    EXPECT_EQ(count(run_queue(setup, profile, {{"use_gpu", false, {}}}), JobOutcome::refused), 3) << profile;
  }
}

// Less than the margin free, more than 90 % used, else available: the published queue's words.
TEST(JobQueueStatus, FollowsWhatThePolicyCountsAsTaken) {
  EXPECT_EQ(card_status(10'000, 9'000, 1'000), CardStatus::available);
  EXPECT_EQ(card_status(10'000, 9'001, 999), CardStatus::busy);
  EXPECT_EQ(card_status(10'000, 9'001, 1'000), CardStatus::out_of_memory);
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(12_GiB, SimTime{0}, minutes{1})};
  setup.keep_moments = true;
  const auto statuses = [&](const std::string& profile) {
    std::vector<CardStatus> all;
    for (const CardMoment& moment : run_job_queue(setup, *with_margin(profile)).moments)
      all.push_back(moment.status);
    return all;
  };
  EXPECT_THAT(statuses("backfill"), testing::Each(CardStatus::available));
  EXPECT_THAT(statuses("faithful"), testing::Contains(CardStatus::out_of_memory));  // 12 GiB count twice
}

// A variant with mixed precision needs 9 GiB in place of 16 and takes 80 s in place of 100.
TEST(JobQueueVariants, AreTriedInOrderBeforeTheBatchIsHalved) {
  JobQueueSetup setup = one_that_shrinks();
  JobSpec& job = setup.jobs[1];
  job.demand.variants = {{"checkpointing", 12_GiB, 0, 1}, {"mixed precision", 0, 576_MiB, 1}};
  job.variants = {{{{.duration = seconds{130}}}, {}}, {{{.duration = seconds{80}}}, {}}};
  setup.keep_moments = true;
  for (const std::string& profile : kReserving) {
    const JobQueueRun run = run_queue(setup, profile, {{"degrade", "degrade-first", {}}});
    EXPECT_EQ(run.jobs[1].split, (BatchSplit{16, 1, 2})) << profile;
    EXPECT_EQ(run.jobs[1].end, seconds{90}) << profile;
    EXPECT_EQ(run.stays[1].most_used, 9_GiB) << profile;
    EXPECT_THAT(run.jobs[1].reason, HasSubstr("16.0 GiB for batch 16 did not fit: runs as mixed precision at "
                                              "batch 16 with 9.0 GiB"));
    EXPECT_EQ(run_queue(setup, profile).jobs[1].split, (BatchSplit{16, 1, 0})) << profile;  // it may not
  }
}

TEST(JobQueueVariants, OneThatFitsTheCardSavesAJobFromBeingRefused) {
  JobQueueSetup setup{.cluster = cards_of(24_GiB)};
  setup.jobs = {plain_job(30_GiB, SimTime{0}, minutes{1})};
  setup.jobs[0].demand.variants = {{"checkpointing", 20_GiB, 0, 1}};
  setup.jobs[0].variants = {{{{.duration = minutes{2}}}, {}}};
  EXPECT_EQ(run_queue(setup, "backfill").jobs[0].outcome, JobOutcome::refused);
  EXPECT_EQ(run_queue(setup, "backfill", {{"degrade", "degrade-first", {}}}).jobs[0].end, minutes{2});
  EXPECT_EQ(run_queue(setup, "backfill", {{"degrade", "wait-first", {}}}).jobs[0].first_start, minutes{5});
}

// A job of 6 GiB was promised 2 and died; its promise stands, and its memory is back. What the first of the
// queue waits for is then the end of the other one, not a moment at which the dead job's memory comes back
// once more.
TEST(JobQueueCases, TheMemoryOfADeadJobIsNotReservedTwice) {
  JobQueueSetup setup{.cluster = cards_of(16_GiB)};
  JobSpec dies = plain_job(2_GiB, SimTime{0}, minutes{50});
  dies.phases[0].fixed_use = 6_GiB;
  dies.crash_after = minutes{1};
  setup.jobs = {dies, plain_job(8_GiB, SimTime{0}, minutes{100}), plain_job(12_GiB, minutes{2}, minutes{10}),
                plain_job(4_GiB, minutes{3}, minutes{70})};
  const OptionMap options{{"accounting", "measured", {}}, {"lease_s", 0.0, {}}};
  const JobQueueRun run = run_queue(setup, "backfill", options);
  EXPECT_EQ(run.jobs[0].outcome, JobOutcome::crashed);
  // The large one can start when 12 of 16 GiB are free, at 100 min; one of 70 min goes before it.
  EXPECT_EQ(run.jobs[3].first_start, minutes{3});
  EXPECT_EQ(run.jobs[2].first_start, minutes{100});
}

/// Sends the first of the queue to the back, for ever.
class ToTheBack final : public Admitter {
 public:
  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& /*observation*/) override {
    if (question.event != QueueEvent::examine || question.cluster.waiting.empty()) return {};
    const WaitingJobs& waiting = question.cluster.waiting;
    return {.action = AdmitterAnswer::Action::to_back,
            .job = waiting.jobs(waiting.occupied().front()).begin()->job};
  }
  [[nodiscard]] QueueRules rules() const override { return {}; }
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override { return card.total; }
};

TEST(JobQueueCases, APolicyThatNeverComesToAnEndEndsItsRun) {
  JobQueueSetup setup{.cluster = cards_of(16_GiB)};
  setup.jobs = {plain_job(2_GiB, SimTime{0}, minutes{1}), plain_job(2_GiB, SimTime{0}, minutes{1})};
  ToTheBack policy;
  const JobQueueRun run = run_job_queue(setup, policy);
  EXPECT_EQ(run.ended_early, "the queue policy gave answers at one moment without an end");
  EXPECT_EQ(run.jobs[0].outcome, JobOutcome::pending);
}

}  // namespace
}  // namespace vramlab
