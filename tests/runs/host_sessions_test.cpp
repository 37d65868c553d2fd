// A real program that looks at its queue whenever something happened comes to the decisions of the simulated
// queue, which goes step by step through the same session.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "policies/contract/job_session.hpp"
#include "tests/runs/queue_rig.hpp"

namespace vramlab {
namespace {

/// One start: when, which job, where, with what promise and batch.
struct Start {
  SimTime at{0};
  JobId job = 0;
  std::vector<CardId> cards;
  Bytes need = 0;

  friend auto operator<=>(const Start&, const Start&) = default;
};

JobQueueSetup random_jobs(std::uint64_t seed) {
  Random random{seed};
  JobQueueSetup setup{.cluster = cards_of(24_GiB, 3)};
  SimTime arrival{0};
  for (int i = 0; i < 60; ++i) {
    arrival += seconds{random.between(0, 40)};
    JobSpec job = plain_job(static_cast<Bytes>(random.between(0, 16)) * 1_GiB, arrival,
                            seconds{random.between(10, 400)});
    job.demand.per_sample = 256_MiB;
    job.demand.batch = job.demand.effective = std::int64_t{1} << random.between(0, 4);
    job.demand.cards = random.between(0, 5) == 0 ? 2 : 1;
    job.demand.priority = static_cast<std::int32_t>(random.between(0, 1));
    setup.jobs.push_back(std::move(job));
  }
  setup.keep_moments = true;
  return setup;
}

std::vector<Start> simulated_starts(const JobQueueRun& run) {
  std::vector<Start> starts;
  for (const JobStay& stay : run.stays) starts.push_back({stay.from, stay.job, stay.cards, stay.need});
  std::sort(starts.begin(), starts.end());
  return starts;
}

/// The same jobs submitted to a session at their arrivals, each leaving when its time is over.
std::vector<Start> hosted_starts(const JobQueueSetup& setup, std::unique_ptr<Admitter> policy,
                                 std::map<JobId, QueuedJob::State>& ended) {
  const SimTime patience = policy->rules().wait_timeout;
  AdmitterSession session{std::move(policy), {24_GiB, 24_GiB, 24_GiB}};
  std::set<SimTime> moments;
  for (const JobSpec& job : setup.jobs) moments.insert({job.arrival, job.arrival + patience});
  std::multimap<SimTime, JobId> ends;
  std::vector<Start> starts;
  std::set<JobId> seen;
  std::size_t next = 0;
  while (!moments.empty()) {
    const SimTime now = *moments.begin();
    moments.erase(moments.begin());
    for (auto end = ends.begin(); end != ends.end() && end->first == now; end = ends.erase(end)) {
      session.leave(end->second);
    }
    for (; next < setup.jobs.size() && setup.jobs[next].arrival == now; ++next) {
      const JobSpec& job = setup.jobs[next];
      session.submit({.demand = job.demand, .expected = job.duration()}, now);
    }
    session.examine(now);
    for (const auto& [id, job] : session.jobs()) {
      ended[id] = job.state;
      if (job.state != QueuedJob::State::runs || !seen.insert(id).second) continue;
      starts.push_back({now, id, job.cards, job.need});
      ends.emplace(now + setup.jobs[id].duration(), id);
      moments.insert(now + setup.jobs[id].duration());
    }
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

TEST(HostSessions, AQueueOfRealProcessesDecidesAsTheSimulatedOne) {
  const std::vector<OptionMap> variants{
      {}, {{"degrade", "degrade-first"}}, {{"placement", "worst"}}, {{"wait_timeout_s", 120.0}}};
  std::size_t starts = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const JobQueueSetup setup = random_jobs(seed);
    for (const std::string profile : {"strict-fifo", "best-effort", "backfill"}) {
      for (const OptionMap& options : variants) {
        const JobQueueRun run = run_queue(setup, profile, options);
        std::map<JobId, QueuedJob::State> ended;
        const auto hosted = hosted_starts(setup, queue_policy(profile, options), ended);
        EXPECT_EQ(simulated_starts(run), hosted) << profile << ' ' << seed;
        starts += hosted.size();
        for (JobId id = 0; id < run.jobs.size(); ++id) {
          const JobOutcome outcome = run.jobs[id].outcome;
          EXPECT_EQ(outcome == JobOutcome::wait_timeout, ended[id] == QueuedJob::State::failed) << id;
          EXPECT_EQ(outcome == JobOutcome::refused, ended[id] == QueuedJob::State::refused) << id;
        }
      }
    }
  }
  EXPECT_GT(starts, 2000u);
}

}  // namespace
}  // namespace vramlab
