#include "policies/contract/jobs.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {

Bytes JobDemand::need(std::int64_t with_batch, Bytes card_total) const {
  if (share_milli > 0) {
    const auto milli = static_cast<Bytes>(share_milli);
    return card_total / 1000 * milli + card_total % 1000 * milli / 1000;  // down: two halves fit a card
  }
  return fixed + per_sample * static_cast<Bytes>(std::max(with_batch, least_batch));
}

JobDemand JobDemand::as_variant(std::size_t variant) const {
  JobDemand demand = *this;
  demand.variants.clear();
  if (variant == 0) return demand;
  const DemandVariant& one = variants[variant - 1];
  demand.fixed = one.fixed;
  demand.per_sample = one.per_sample;
  demand.least_batch = one.least_batch;
  return demand;
}

BatchSplit exact_split(std::int64_t original, std::int64_t batch) {
  std::int64_t divisor = std::clamp<std::int64_t>(batch, 1, original);
  while (original % divisor != 0) --divisor;
  return {.batch = divisor, .accumulation = original / divisor};
}

BatchSplit halved_split(std::int64_t original, std::int64_t batch) {
  return {.batch = batch, .accumulation = original / batch};
}

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
