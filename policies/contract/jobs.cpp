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
  if (fresh) groups_.push_back({demand, {}, 0, least_need_ ? least_need_(demand) : 0});
  return entry->second;
}

std::optional<GroupTurn> WaitingJobs::next(const GroupTurn& from, Bytes most) const {
  const auto* found = turns_.first_fitting(~most, from);
  if (found == nullptr) return std::nullopt;
  return found->first;
}

// The first job of the group may change between these two.
void WaitingJobs::leave_turn(GroupId id) {
  const Group& group = groups_[id];
  touched_.push_back({id, std::nullopt});
  if (group.jobs.empty()) return;
  touched_.back().ticket = group.jobs.begin()->ticket;
  turns_.erase({group.demand.priority, group.jobs.begin()->ticket, id});
}
void WaitingJobs::take_turn(GroupId id) {
  const Group& group = groups_[id];
  if (group.jobs.empty()) return;
  turns_.set({group.demand.priority, group.jobs.begin()->ticket, id}, ~group.least_need);
}

void WaitingJobs::add(GroupId id, const WaitingJob& job) {
  Group& group = groups_[id];
  if (group.jobs.empty()) {
    group.listed_at = static_cast<std::uint32_t>(occupied_.size());
    occupied_.push_back(id);
  }
  leave_turn(id);
  group.jobs.insert(group.jobs.end(), job);
  take_turn(id);
  ++size_;
}

void WaitingJobs::remove(GroupId id, std::uint64_t ticket) {
  Group& group = groups_[id];
  leave_turn(id);
  if (group.jobs.erase({.ticket = ticket}) == 0) throw InternalError("a job left the queue twice");
  take_turn(id);
  --size_;
  if (!group.jobs.empty()) return;
  groups_[occupied_.back()].listed_at = group.listed_at;
  occupied_[group.listed_at] = occupied_.back();
  occupied_.pop_back();
}

}  // namespace vramlab
