// The jobs that hold memory, by node and expected end: what a reservation for a later start rests on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "policies/card_index.hpp"
#include "policies/waiting_jobs.hpp"

namespace vramlab {

/// One running job.
struct RunningJob {
  SimTime expected_end{SimTime::max()};  ///< max = it does not say
  JobId job = 0;
  Bytes promised = 0;  ///< on each card
  Bytes used = 0;      ///< on each card, now
  std::vector<CardId> cards;
};

/// Every node's running jobs, those that should end first in front, and a number that changes with them.
class RunningJobs {
 public:
  explicit RunningJobs(std::size_t nodes) : jobs_(nodes), versions_(nodes) {}

  void add(NodeId node, RunningJob job) {
    auto& jobs = jobs_[node];
    const auto at = std::upper_bound(
        jobs.begin(), jobs.end(), job,
        [](const RunningJob& a, const RunningJob& b) { return a.expected_end < b.expected_end; });
    jobs.insert(at, std::move(job));
    touch(node);
  }

  void remove(NodeId node, JobId job) {
    std::erase_if(jobs_[node], [&](const RunningJob& running) { return running.job == job; });
    touch(node);
  }

  /// The job now uses so many bytes on each of its cards.
  void set_used(NodeId node, JobId job, Bytes used) {
    for (RunningJob& running : jobs_[node]) {
      if (running.job == job) running.used = used;
    }
    touch(node);
  }

  /// Anything else about the node changed.
  void touch(NodeId node) { ++versions_[node]; }

  [[nodiscard]] const std::vector<RunningJob>& on(NodeId node) const { return jobs_[node]; }
  [[nodiscard]] std::uint64_t version(NodeId node) const { return versions_[node]; }

 private:
  std::vector<std::vector<RunningJob>> jobs_;
  std::vector<std::uint64_t> versions_;
};

}  // namespace vramlab
