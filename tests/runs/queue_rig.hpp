// What the tests of the job queue share: a small cluster, jobs in minutes, a policy by profile and options.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "policies/contract/policy_set.hpp"
#include "sim/runs/job_queue_loop.hpp"

namespace vramlab {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// `count` cards of `total` bytes on one node.
inline ClusterSetup cards_of(Bytes total, std::uint32_t count = 1) {
  ClusterSetup cluster;
  cluster.pools = {{total}};
  cluster.nodes = {{.pool = 0, .first = 0, .count = count}};
  return cluster;
}

/// A job that declares `need` bytes on one card and uses them from its start to its end.
inline JobSpec plain_job(Bytes need, SimTime arrival, SimTime duration) {
  JobSpec job;
  job.arrival = arrival;
  job.demand.fixed = need;
  job.phases = {{.duration = duration}};
  return job;
}

/// `profile` with `more` on top, and no margin unless `more` sets one: the cases state bare figures.
inline std::unique_ptr<Admitter> queue_policy(const std::string& profile, const OptionMap& more = {}) {
  return builtin_policies()->admitters.make(
      {"job-queue", profile, overlay({{"safety_margin_mb", std::int64_t{0}, {}}}, more), "/policies/0"});
}

inline JobQueueRun run_queue(const JobQueueSetup& setup, const std::string& profile,
                             const OptionMap& more = {}) {
  return run_job_queue(setup, *queue_policy(profile, more));
}

}  // namespace vramlab
