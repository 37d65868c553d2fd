#include "sim/runs/cluster_books.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr Bytes kAlertPercent = 90;
constexpr Bytes kCalmPercent = 85;  // the alert ends here, so that it does not flutter

Bytes pending_bytes(const ClusterBooks& books, const WaitingJobs& waiting) {
  Bytes sum = 0;
  for (const GroupId group : waiting.occupied()) {
    const JobDemand& demand = waiting.demand(group);
    const Bytes need = demand.need(demand.batch, books.index().largest_total(demand));
    sum += need * static_cast<Bytes>(demand.cards) * waiting.jobs(group).size();
  }
  return sum;
}

}  // namespace

ClusterBooks::ClusterBooks(const ClusterSetup& setup, const Admitter& policy, bool keep_moments)
    : policy_(policy),
      index_(setup.pools, setup.nodes, policy.rules().placement),
      keep_moments_(keep_moments) {
  for (const CardNode& node : setup.nodes) {
    cards_.resize(cards_.size() + node.count, {.total = setup.pools[node.pool].total});
    record_.capacity += setup.pools[node.pool].total * node.count;
  }
  wanted_.resize(cards_.size());
  alerted_.resize(cards_.size());
  for (const auto& quota : setup.quotas) accounts_.push_back({quota, 0});
  for (CardId card = 0; card < cards_.size(); ++card) index_.set(card, policy_.available(cards_[card]));
}

void ClusterBooks::changed(CardId card, SimTime now) {
  CardView& view = cards_[card];
  const Bytes free = view.total - view.reserved - view.foreign;
  sums_.foreign -= view.foreign;
  view.foreign = std::min(wanted_[card], view.foreign + free);
  sums_.foreign += view.foreign;
  index_.set(card, policy_.available(view));
  const Bytes taken = view.reserved + view.foreign;
  if (!alerted_[card] && taken * 100 > view.total * kAlertPercent) {
    alerted_[card] = true;
    ++record_.alerts;
    ++sums_.cards_alerted;
  } else if (alerted_[card] && taken * 100 < view.total * kCalmPercent) {
    alerted_[card] = false;
    --sums_.cards_alerted;
  }
  if (!keep_moments_) return;
  record_.moments.push_back({now, card, view.reserved, view.foreign, view.promised, view.jobs, alerted_[card],
                             policy_.status(view)});
}

// `need` is added for each of `jobs`, 1 or −1; sums of bytes wrap where they fall, as intended.
void ClusterBooks::shift_promise(const std::vector<CardId>& cards, Bytes need, int jobs,
                                 std::uint32_t account, SimTime now) {
  const Bytes change = jobs > 0 ? need : -need;
  for (const CardId card : cards) {
    cards_[card].promised += change;
    cards_[card].held += change;
    cards_[card].jobs += jobs;
    changed(card, now);
  }
  const Bytes sum = change * static_cast<Bytes>(cards.size());
  sums_.promised += sum;
  accounts_[account].promised += sum;
}

void ClusterBooks::promise(const std::vector<CardId>& cards, Bytes need, std::uint32_t account, SimTime now) {
  shift_promise(cards, need, 1, account, now);
  const bool too_much = std::any_of(cards.begin(), cards.end(), [&](CardId card) {
    return cards_[card].promised + cards_[card].foreign > cards_[card].total;
  });
  record_.overcommits += too_much ? 1 : 0;
}

void ClusterBooks::withdraw(const std::vector<CardId>& cards, Bytes need, std::uint32_t account,
                            SimTime now) {
  for (const CardId card : cards) {
    if (cards_[card].jobs == 0 || cards_[card].promised < need) {
      throw InternalError("a promise was taken back twice");
    }
  }
  shift_promise(cards, need, -1, account, now);
}

bool ClusterBooks::take(JobId job, const std::vector<CardId>& cards, Bytes need, Bytes use, SimTime now) {
  for (const CardId card : cards) {
    const CardView& view = cards_[card];
    if (use > view.total - view.reserved - view.foreign) return false;
  }
  for (const CardId card : cards) hold(job, card, need, {}, {use, use}, now);
  return true;
}

void ClusterBooks::give(JobId job, const std::vector<CardId>& cards, Bytes need, Bytes use, SimTime now) {
  for (const CardId card : cards) hold(job, card, need, {use, use}, {}, now);
}

void ClusterBooks::hold(JobId job, CardId card, Bytes need, const Holding& before, const Holding& after,
                        SimTime now) {
  CardView& view = cards_[card];
  view.allocated += after.allocated - before.allocated;  // wraps where it falls, as intended
  view.reserved += after.reserved - before.reserved;
  view.held += std::max(need, after.reserved) - std::max(need, before.reserved);
  if (view.reserved + view.foreign > view.total) throw InternalError("a card holds more than it has");
  count_use(now);
  sums_.used += after.reserved - before.reserved;
  if (keep_moments_ && after.reserved != before.reserved) {
    record_.holdings.push_back({now, job, card, after.reserved});
  }
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

void ClusterBooks::count_use(SimTime now) {
  record_.byte_seconds += static_cast<double>(sums_.used) * to_seconds(now - counted_to_);
  counted_to_ = now;
}

ClusterRecord ClusterBooks::take_record(SimTime now) {
  count_use(now);
  return std::move(record_);
}

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
  const QueueMoment moment{books.sums(), now, active, static_cast<std::int64_t>(waiting.size()),
                           pending_bytes(books, waiting)};
  if (!moments_.empty() && moments_.back().time == now) moments_.pop_back();
  const auto alike = [](QueueMoment a, const QueueMoment& b) {
    a.time = b.time;
    return a == b;
  };
  if (moments_.empty() || !alike(moments_.back(), moment)) moments_.push_back(moment);
}

}  // namespace vramlab
