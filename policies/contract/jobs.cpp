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
  if (fresh) {
    groups_.push_back({.demand = demand,
                       .queue = queue_of({demand.cards, demand.pools}),
                       .least_need = least_need_ ? least_need_(demand) : 0});
  }
  return entry->second;
}

std::size_t WaitingJobs::queue_of(const CardsAsked& asked) {
  const auto known = std::ranges::find(queues_, asked, &Queue::asked);
  if (known != queues_.end()) return static_cast<std::size_t>(known - queues_.begin());
  queues_.push_back({.asked = asked});
  return queues_.size() - 1;
}

std::optional<GroupTurn> WaitingJobs::next(const GroupTurn& from, const Most& most) const {
  std::optional<GroupTurn> first;
  for (const Queue& queue : queues_) {
    if (queue.turns.empty()) continue;
    const auto* found = queue.turns.first_fitting(~most(queue.asked), from);
    if (found != nullptr && (!first || found->first < *first)) first = found->first;
  }
  return first;
}

std::vector<GroupTurn> WaitingJobs::shorter(SimTime longest, const Most& most) const {
  std::vector<GroupTurn> turns;
  for (const Queue& queue : queues_) {
    if (queue.lengths.empty()) continue;
    const Bytes least = ~most(queue.asked);
    const auto* found = queue.lengths.first_fitting(least, {SimTime::min(), 0});
    while (found != nullptr && found->first.first <= longest) {
      const auto [length, group] = found->first;
      turns.push_back(turn_of(group));
      found = queue.lengths.first_fitting(least, {length, group + 1});
    }
  }
  return turns;
}

GroupTurn WaitingJobs::turn_of(GroupId id) const {
  return {groups_[id].demand.priority, groups_[id].jobs.begin()->ticket, id};
}

// The first job of the group may change between these two, and the shortest.
void WaitingJobs::leave_turn(GroupId id) {
  const Group& group = groups_[id];
  touched_.push_back({id, std::nullopt});
  if (group.jobs.empty()) return;
  touched_.back().ticket = group.jobs.begin()->ticket;
  queues_[group.queue].turns.erase(turn_of(id));
  queues_[group.queue].lengths.erase({*group.lengths.begin(), id});
}
void WaitingJobs::take_turn(GroupId id) {
  const Group& group = groups_[id];
  if (group.jobs.empty()) return;
  queues_[group.queue].turns.set(turn_of(id), ~group.least_need);
  queues_[group.queue].lengths.set({*group.lengths.begin(), id}, ~group.least_need);
}

void WaitingJobs::add(GroupId id, const WaitingJob& job) {
  Group& group = groups_[id];
  if (group.jobs.empty()) {
    group.listed_at = static_cast<std::uint32_t>(occupied_.size());
    occupied_.push_back(id);
  }
  leave_turn(id);
  group.jobs.insert(group.jobs.end(), job);
  group.lengths.insert(job.expected);
  take_turn(id);
  ++size_;
}

void WaitingJobs::remove(GroupId id, std::uint64_t ticket) {
  Group& group = groups_[id];
  leave_turn(id);
  const auto job = group.jobs.find({.ticket = ticket});
  if (job == group.jobs.end()) throw InternalError("a job left the queue twice");
  group.lengths.erase(group.lengths.find(job->expected));
  group.jobs.erase(job);
  take_turn(id);
  --size_;
  if (!group.jobs.empty()) return;
  groups_[occupied_.back()].listed_at = group.listed_at;
  occupied_[group.listed_at] = occupied_.back();
  occupied_.pop_back();
}

}  // namespace vramlab
