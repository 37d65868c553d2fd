// Watches a run of the job queue: who was on which cards when, and the queue as a whole over time.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/waiting_jobs.hpp"
#include "sim/workload/cluster_books.hpp"
#include "sim/workload/job.hpp"

namespace vramlab {

/// The queue and all cards together, from one moment to the next (P3.8). Bytes are sums over all cards.
struct QueueMoment {
  SimTime time{0};
  std::int64_t active = 0;   ///< jobs that hold a promise
  std::int64_t pending = 0;  ///< jobs that wait
  Bytes used = 0;            ///< by jobs
  Bytes foreign = 0;
  Bytes promised = 0;
  Bytes pending_bytes = 0;         ///< what waiting jobs ask for, on the largest cards they may use
  std::int64_t cards_alerted = 0;  ///< cards over 90 % full; until they are below 85 %
};

/// Does nothing unless it is told to keep what it sees.
class QueueMonitor {
 public:
  QueueMonitor(bool keep, std::size_t jobs) : keep_(keep), current_(keep ? jobs : 0) {}

  void admitted(JobId job, const std::vector<CardId>& cards, Bytes need, SimTime now);
  void uses(JobId job, Bytes used);
  void left(JobId job, bool ran_out, SimTime now);

  /// Everything else of this event is done.
  void look(const ClusterBooks& books, const WaitingJobs& waiting, std::int64_t active, SimTime now);

  [[nodiscard]] std::vector<JobStay> take_stays() { return std::move(stays_); }
  [[nodiscard]] std::vector<QueueMoment> take_moments() { return std::move(moments_); }

 private:
  bool keep_;
  std::vector<std::size_t> current_;  ///< number of each job's last stay
  std::vector<JobStay> stays_;
  std::vector<QueueMoment> moments_;
};

}  // namespace vramlab
