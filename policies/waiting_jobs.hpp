// The jobs that wait for memory, grouped by what they ask for: what does not fit one does not fit its group.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "policies/job_demand.hpp"
#include "sim/core/units.hpp"

namespace vramlab {

using JobId = std::uint32_t;
using GroupId = std::uint32_t;

/// One waiting job. Tickets are unique and say who came first; a job sent to the back draws a new one.
struct WaitingJob {
  std::uint64_t ticket = 0;
  JobId job = 0;
  SimTime since{0};                  ///< when it was submitted: what ageing counts from
  SimTime expected{SimTime::max()};  ///< how long it says it runs; max = it does not say

  friend bool operator<(const WaitingJob& a, const WaitingJob& b) { return a.ticket < b.ticket; }
};

/// All waiting jobs. Groups keep their numbers for ever; those with jobs are listed in `occupied`.
class WaitingJobs {
 public:
  /// The group of all jobs with this demand.
  GroupId group_of(const JobDemand& demand);

  void add(GroupId group, const WaitingJob& job);
  /// Throws InternalError if no job with that ticket waits in the group.
  void remove(GroupId group, std::uint64_t ticket);

  [[nodiscard]] const JobDemand& demand(GroupId group) const { return groups_[group].demand; }
  [[nodiscard]] const std::set<WaitingJob>& jobs(GroupId group) const { return groups_[group].jobs; }
  /// Groups with at least one job, in no particular order.
  [[nodiscard]] std::span<const GroupId> occupied() const { return occupied_; }
  [[nodiscard]] std::size_t group_count() const { return groups_.size(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  struct Group {
    JobDemand demand;
    std::set<WaitingJob> jobs;
    std::uint32_t listed_at = 0;  ///< place in `occupied_`, while it has jobs
  };
  std::vector<Group> groups_;
  std::map<JobDemand, GroupId> ids_;
  std::vector<GroupId> occupied_;
  std::size_t size_ = 0;
};

}  // namespace vramlab
