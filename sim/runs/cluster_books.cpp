#include "sim/runs/cluster_books.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr Bytes kAlertPercent = 90;
constexpr Bytes kCalmPercent = 85;  // the alert ends here, so that it does not flutter

}  // namespace

ClusterBooks::ClusterBooks(const ClusterSetup& setup, const Admitter& policy, bool keep_moments)
    : policy_(policy),
      index_(setup.pools, setup.nodes, policy.rules().placement),
      keep_moments_(keep_moments) {
  for (const CardNode& node : setup.nodes) {
    cards_.resize(cards_.size() + node.count, {.total = setup.pools[node.pool].total});
    capacity_ += setup.pools[node.pool].total * node.count;
  }
  wanted_.resize(cards_.size());
  alerted_.resize(cards_.size());
  for (const auto& quota : setup.quotas) accounts_.push_back({quota, 0});
  for (CardId card = 0; card < cards_.size(); ++card) index_.set(card, policy_.available(cards_[card]));
}

void ClusterBooks::changed(CardId card, SimTime now) {
  CardView& view = cards_[card];
  const Bytes free = view.total - view.reserved - view.foreign;
  foreign_ -= view.foreign;
  view.foreign = std::min(wanted_[card], view.foreign + free);
  foreign_ += view.foreign;
  index_.set(card, policy_.available(view));
  const Bytes taken = view.reserved + view.foreign;
  if (!alerted_[card] && taken * 100 > view.total * kAlertPercent) {
    alerted_[card] = true;
    ++alerts_;
    ++cards_alerted_;
  } else if (alerted_[card] && taken * 100 < view.total * kCalmPercent) {
    alerted_[card] = false;
    --cards_alerted_;
  }
  if (!keep_moments_) return;
  moments_.push_back({now, card, view.reserved, view.foreign, view.promised, view.jobs, alerted_[card]});
}

void ClusterBooks::promise(const std::vector<CardId>& cards, Bytes need, std::uint32_t account, SimTime now) {
  bool too_much = false;
  for (const CardId card : cards) {
    CardView& view = cards_[card];
    view.promised += need;
    view.held += need;
    ++view.jobs;
    too_much = too_much || view.promised + view.foreign > view.total;
    changed(card, now);
  }
  overcommits_ += too_much ? 1 : 0;
  const Bytes sum = need * static_cast<Bytes>(cards.size());
  promised_ += sum;
  accounts_[account].promised += sum;
}

void ClusterBooks::withdraw(const std::vector<CardId>& cards, Bytes need, std::uint32_t account,
                            SimTime now) {
  for (const CardId card : cards) {
    CardView& view = cards_[card];
    if (view.jobs == 0 || view.promised < need) throw InternalError("a promise was taken back twice");
    view.promised -= need;
    view.held -= need;
    --view.jobs;
    changed(card, now);
  }
  const Bytes sum = need * static_cast<Bytes>(cards.size());
  promised_ -= sum;
  accounts_[account].promised -= sum;
}

bool ClusterBooks::take(const std::vector<CardId>& cards, Bytes need, Bytes use, SimTime now) {
  for (const CardId card : cards) {
    const CardView& view = cards_[card];
    if (use > view.total - view.reserved - view.foreign) return false;
  }
  for (const CardId card : cards) hold(card, need, {}, {use, use}, now);
  return true;
}

void ClusterBooks::give(const std::vector<CardId>& cards, Bytes need, Bytes use, SimTime now) {
  for (const CardId card : cards) hold(card, need, {use, use}, {}, now);
}

void ClusterBooks::hold(CardId card, Bytes need, const Holding& before, const Holding& after, SimTime now) {
  CardView& view = cards_[card];
  view.allocated += after.allocated - before.allocated;  // wraps where it falls, as intended
  view.reserved += after.reserved - before.reserved;
  view.held += std::max(need, after.reserved) - std::max(need, before.reserved);
  if (view.reserved + view.foreign > view.total) throw InternalError("a card holds more than it has");
  add_used(static_cast<std::int64_t>(after.reserved - before.reserved), now);
  changed(card, now);
}

void ClusterBooks::stranger(CardId card, std::int64_t change, SimTime now) {
  wanted_[card] += static_cast<Bytes>(change);  // wraps for a negative change, as intended
  changed(card, now);
}

bool ClusterBooks::of_one_node(const std::vector<CardId>& cards) const {
  return !cards.empty() && std::all_of(cards.begin(), cards.end(), [&](CardId card) {
    return card < cards_.size() && index_.node_of(card) == index_.node_of(cards.front());
  });
}

double ClusterBooks::byte_seconds(SimTime now) const {
  return byte_seconds_ + static_cast<double>(used_) * to_seconds(now - counted_to_);
}

void ClusterBooks::add_used(std::int64_t change, SimTime now) {
  byte_seconds_ = byte_seconds(now);
  counted_to_ = now;
  used_ += static_cast<Bytes>(change);
}

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
