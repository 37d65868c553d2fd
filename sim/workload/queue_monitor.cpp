#include "sim/workload/queue_monitor.hpp"

#include <algorithm>

namespace vramlab {
namespace {

Bytes pending_bytes(const ClusterBooks& books, const WaitingJobs& waiting) {
  Bytes sum = 0;
  for (const GroupId group : waiting.occupied()) {
    const JobDemand& demand = waiting.demand(group);
    const Bytes need = demand.need(demand.batch, books.index().largest_total(demand));
    sum += need * static_cast<Bytes>(demand.cards) * waiting.jobs(group).size();
  }
  return sum;
}

bool differs(QueueMoment a, const QueueMoment& b) {
  return a.active != b.active || a.pending != b.pending || a.used != b.used || a.foreign != b.foreign ||
         a.promised != b.promised || a.pending_bytes != b.pending_bytes || a.cards_alerted != b.cards_alerted;
}

}  // namespace

void QueueMonitor::admitted(JobId job, const std::vector<CardId>& cards, Bytes need, SimTime now) {
  if (!keep_) return;
  current_[job] = stays_.size();
  stays_.push_back({.job = job, .cards = cards, .from = now, .to = now, .need = need});
}

void QueueMonitor::uses(JobId job, Bytes used) {
  if (!keep_) return;
  JobStay& stay = stays_[current_[job]];
  stay.most_used = std::max(stay.most_used, used);
}

void QueueMonitor::left(JobId job, bool ran_out, SimTime now) {
  if (!keep_) return;
  stays_[current_[job]].to = now;
  stays_[current_[job]].ran_out = ran_out;
}

// Of several changes in one moment the last one counts.
void QueueMonitor::look(const ClusterBooks& books, const WaitingJobs& waiting, std::int64_t active,
                        SimTime now) {
  if (!keep_) return;
  const QueueMoment moment{.time = now,
                           .active = active,
                           .pending = static_cast<std::int64_t>(waiting.size()),
                           .used = books.used(),
                           .foreign = books.foreign(),
                           .promised = books.promised(),
                           .pending_bytes = pending_bytes(books, waiting),
                           .cards_alerted = books.cards_alerted()};
  if (!moments_.empty() && moments_.back().time == now) moments_.pop_back();
  if (moments_.empty() || differs(moments_.back(), moment)) moments_.push_back(moment);
}

}  // namespace vramlab
