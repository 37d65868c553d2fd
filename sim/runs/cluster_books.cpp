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

ClusterBooks::ClusterBooks(AdmitterSession& session, bool keep_moments)
    : session_(session),
      wanted_(session.cards().size()),
      alerted_(session.cards().size()),
      keep_moments_(keep_moments) {
  for (const CardView& card : session.cards()) record_.capacity += card.total;
}

void ClusterBooks::changed(CardId card, SimTime now) {
  const CardView& view = cards()[card];
  const Bytes foreign = std::min(wanted_[card], view.total - view.reserved);
  if (foreign != view.foreign) {
    sums_.foreign += foreign - view.foreign;  // wraps where it falls, as intended
    session_.set_foreign(card, foreign);
  }
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
                             session_.policy().status(view)});
}

void ClusterBooks::promise_changed(const QueuedJob& job, bool given, SimTime now) {
  const Bytes sum = job.need * static_cast<Bytes>(job.cards.size());
  sums_.promised += given ? sum : -sum;
  bool too_much = false;
  for (const CardId card : job.cards) {
    const CardView& view = cards()[card];
    changed(card, now);
    too_much = too_much || view.promised + view.foreign > view.total;
  }
  record_.overcommits += given && too_much ? 1 : 0;
}

bool ClusterBooks::take(JobId id, Bytes use, SimTime now) {
  const std::vector<CardId>& on = job(id).cards;
  for (const CardId card : on) {
    const CardView& view = cards()[card];
    if (use > view.total - view.reserved - view.foreign) return false;
  }
  for (std::size_t place = 0; place < on.size(); ++place) hold(id, place, {use, use}, now);
  return true;
}

void ClusterBooks::give(JobId id, SimTime now) {
  for (std::size_t place = 0; place < job(id).cards.size(); ++place) hold(id, place, {}, now);
}

void ClusterBooks::hold(JobId id, std::size_t place, const Holding& now_held, SimTime now) {
  const QueuedJob& queued = job(id);
  const CardId card = queued.cards.at(place);
  const Bytes before = queued.held.at(place).reserved;
  session_.set_holding(id, place, now_held);
  const CardView& view = cards()[card];
  if (view.reserved + view.foreign > view.total) throw InternalError("a card holds more than it has");
  count_use(now);
  sums_.used += now_held.reserved - before;  // wraps where it falls, as intended
  if (keep_moments_ && now_held.reserved != before) {
    record_.holdings.push_back({now, id, card, now_held.reserved});
  }
  changed(card, now);
}

void ClusterBooks::stranger(CardId card, std::int64_t change, SimTime now) {
  wanted_[card] += static_cast<Bytes>(change);  // wraps for a negative change, as intended
  changed(card, now);
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
