#include "policies/waiting_jobs.hpp"

#include "sim/core/error.hpp"

namespace vramlab {

GroupId WaitingJobs::group_of(const JobDemand& demand) {
  const auto [entry, fresh] = ids_.try_emplace(demand, static_cast<GroupId>(groups_.size()));
  if (fresh) groups_.push_back({demand, {}, 0});
  return entry->second;
}

void WaitingJobs::add(GroupId id, const WaitingJob& job) {
  Group& group = groups_[id];
  if (group.jobs.empty()) {
    group.listed_at = static_cast<std::uint32_t>(occupied_.size());
    occupied_.push_back(id);
  }
  group.jobs.insert(group.jobs.end(), job);
  ++size_;
}

void WaitingJobs::remove(GroupId id, std::uint64_t ticket) {
  Group& group = groups_[id];
  if (group.jobs.erase({.ticket = ticket}) == 0) throw InternalError("a job left the queue twice");
  --size_;
  if (!group.jobs.empty()) return;
  groups_[occupied_.back()].listed_at = group.listed_at;
  occupied_[group.listed_at] = occupied_.back();
  occupied_.pop_back();
}

}  // namespace vramlab
