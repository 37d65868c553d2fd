#include "policies/contract/job_session.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostCards = 1024;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 40;
constexpr Bytes kMostMemory = Bytes{1} << 60;

// What a policy may answer in one look at the queue for each job: started, or sent to the back, with room to
// spare. More is an endless loop.
constexpr std::size_t kMostAnswersAJob = 100;

bool is_over(const QueuedJob& job) {
  return job.state == QueuedJob::State::refused || job.state == QueuedJob::State::failed;
}

/// The cards of a machine in pools of equal size, neighbours of one size as a node.
CardIndex index_of(const std::vector<Bytes>& cards, FitRule rule) {
  std::vector<CardPool> pools;
  std::vector<CardNode> nodes;
  for (CardId card = 0; card < cards.size(); ++card) {
    const auto pool = std::ranges::find(pools, cards[card], &CardPool::total);
    const auto number = static_cast<std::uint32_t>(pool - pools.begin());
    if (pool == pools.end()) pools.push_back({cards[card]});
    if (!nodes.empty() && nodes.back().pool == number) {
      ++nodes.back().count;
    } else {
      nodes.push_back({number, card, 1});
    }
  }
  return {std::move(pools), std::move(nodes), rule};
}

std::vector<Bytes> checked_cards(const std::vector<Bytes>& cards) {
  if (cards.empty() || cards.size() > kMostCards || std::ranges::count(cards, Bytes{0}) > 0) {
    throw InputError("/cards", "must give what each card offers, in bytes above 0, of 1 to " +
                                   std::to_string(kMostCards) + " cards.");
  }
  const std::set<Bytes> kinds(cards.begin(), cards.end());
  if (kinds.size() > 64) throw InputError("/cards", "has cards of more than 64 sizes.");
  return cards;
}

void require_sound(const JobDemand& demand, std::size_t cards) {
  std::vector<Problem> problems;
  const auto require = [&](bool holds, const char* where, const char* allowed) {
    if (!holds) problems.push_back({where, std::string{"is out of range. Allowed: "} + allowed + "."});
  };
  const double whole =
      static_cast<double>(demand.fixed) + static_cast<double>(demand.per_sample) *
                                              static_cast<double>(std::max(demand.batch, demand.least_batch));
  require(whole <= static_cast<double>(kMostMemory), "/need", "at most 2^60 bytes at the whole batch");
  require(demand.batch >= 1 && demand.batch <= kMostBatch, "/batch", "1 to 2^40");
  require(demand.least_batch >= 1 && demand.least_batch <= kMostBatch, "/least_batch", "1 to 2^40");
  require(demand.share_milli >= 0 && demand.share_milli <= 1000, "/share", "0 to 1");
  for (const DemandVariant& one : demand.variants) {
    const std::int64_t most = std::max<std::int64_t>({1, demand.batch, one.least_batch});
    require(one.fixed <= kMostMemory && one.per_sample <= kMostMemory / static_cast<Bytes>(most), "/variants",
            "needs of at most 2^60 bytes at the whole batch");
    require(one.least_batch >= 1 && one.least_batch <= kMostBatch, "/variants", "a least_batch of 1 to 2^40");
  }
  require(demand.cards >= 1 && static_cast<std::size_t>(demand.cards) <= cards, "/cards",
          "1 to the number of cards");
  require(demand.account == 0, "/account", "0");
  require(demand.share_milli > 0 || demand.fixed + demand.per_sample > 0, "/need",
          "more than nothing; a job says what it takes");
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

AdmitterSession::AdmitterSession(std::unique_ptr<Admitter> policy, const std::vector<Bytes>& cards)
    : policy_(std::move(policy)),
      rules_(policy_->rules()),
      index_(index_of(checked_cards(cards), rules_.placement)),
      foreign_(cards.size()),
      running_(index_.nodes().size()) {
  if (rules_.per_phase) throw InputError("", "a policy that admits by phase is for simulated queues.");
  if (rules_.enforces_promise) {
    throw InputError("", "a policy that enforces promises is for simulated queues; a program limits itself.");
  }
  for (const Bytes total : cards) views_.push_back({.total = total});
  refresh();
}

void AdmitterSession::restore(QueueBooks books) {
  if (books.foreign.size() != views_.size()) throw InputError("/foreign", "is of another number of cards.");
  if (!jobs_.empty()) throw InputError("", "a session that has jobs cannot go on from another's books.");
  foreign_ = std::move(books.foreign);
  next_id_ = books.next_id;
  next_ticket_ = books.next_ticket;
  for (QueuedJob& job : books.jobs) {
    const std::string where = "/jobs/" + std::to_string(job.id);
    require_sound(job.demand, views_.size());
    const bool on_cards = std::ranges::all_of(job.cards, [&](CardId card) { return card < views_.size(); });
    const bool runs = job.state == QueuedJob::State::runs;
    if (job.id >= next_id_ || jobs_.contains(job.id) || !on_cards || (runs && job.cards.empty()) ||
        job.ticket >= next_ticket_ || job.split.variant > job.demand.variants.size() ||
        job.need > kMostMemory || job.used > kMostMemory) {
      throw InputError(where, "does not go with the rest of the books.");
    }
    if (job.state == QueuedJob::State::waits) wait(job);
    if (runs) {
      const SimTime end = job.expected == SimTime::max() ? job.expected : job.since + job.expected;
      running_.add(index_.node_of(job.cards.front()), {end, job.id, job.need, job.used, job.cards});
    }
    jobs_.emplace(job.id, std::move(job));
  }
  refresh();
  for (const auto& [id, job] : jobs_) {  // what the policy was told by the sessions before
    if (!is_over(job)) ask(QueueEvent::submitted, &job, job.submitted);
  }
}

QueueBooks AdmitterSession::books() const {
  QueueBooks books{.foreign = foreign_, .next_id = next_id_, .next_ticket = next_ticket_};
  for (const auto& [id, job] : jobs_) books.jobs.push_back(job);
  return books;
}

JobId AdmitterSession::submit(QueuedJob given, SimTime now) {
  given.demand.effective = given.demand.batch;
  require_sound(given.demand, views_.size());
  QueuedJob job{.id = next_id_,
                .name = std::move(given.name),
                .demand = given.demand,
                .submitted = now,
                .since = now,
                .expected = given.expected,
                .patience = given.patience,
                .ticket = next_ticket_};
  const AdmitterAnswer answer = ask(QueueEvent::submitted, &job, now);
  job.reason = answer.reason;
  if (answer.action == Action::refuse) {
    job.state = QueuedJob::State::refused;
  } else {
    wait(job);
  }
  ++next_ticket_;
  jobs_.emplace(job.id, std::move(job));
  return next_id_++;
}

void AdmitterSession::examine(SimTime now) {
  do run_pass(now);
  while (end_waits(now));
}

void AdmitterSession::run_pass(SimTime now) {
  ++pass_;
  waiting_.begin_pass();
  const std::size_t most = kMostAnswersAJob * (1 + waiting_.size());
  for (std::size_t answers = 0; answers <= most; ++answers) {
    const AdmitterAnswer answer = ask(QueueEvent::examine, nullptr, now);
    if (answer.action == Action::wait) return;
    obey(answer, now);
  }
  throw PolicyFault("the queue policy did not come to an end after " + std::to_string(most) + " answers");
}

// True if something changed, so that the others are to be looked at again.
bool AdmitterSession::end_waits(SimTime now) {
  std::vector<JobId> due;
  for (const auto& [id, job] : jobs_) {
    const auto over = [&, waited = now - job.since](SimTime limit) {
      return limit > SimTime{0} && waited >= limit;
    };
    const bool is_due = over(job.patience) || (over(rules_.wait_timeout) && !job.asked);
    if (job.state == QueuedJob::State::waits && is_due) due.push_back(id);
  }
  bool changed = false;
  for (const JobId id : due) {
    QueuedJob& job = jobs_.at(id);
    if (job.state == QueuedJob::State::waits && end_wait(job, now)) changed = true;
  }
  return changed;
}

bool AdmitterSession::end_wait(QueuedJob& job, SimTime now) {
  const AdmitterAnswer answer = ask(QueueEvent::deadline, &job, now);
  if (answer.action == Action::requeue) {
    if (std::exchange(job.reconsidered, true)) {
      throw PolicyFault("the queue policy changed the demand of a waiting job twice in one wait");
    }
    require_sound(answer.demand, views_.size());
    stop_waiting(job);
    job.demand = answer.demand;
    wait(job);
    return true;
  }
  if (answer.action != Action::wait) {
    obey(answer, now);
    return true;
  }
  job.asked = true;
  if (job.patience == SimTime{0} || now - job.since < job.patience) return false;
  const std::string why =
      policy_->why_waiting(waiting_.group_of(job.demand), {views_, accounts_, waiting_, running_, index_});
  stop_waiting(job);
  job.state = QueuedJob::State::failed;
  job.reason = "no memory within " + fixed_point(to_seconds(job.patience), 1) + " s" +
               (why.empty() ? "" : ": " + why) + ".";
  return true;
}

// The policy is not trusted: only a job that waits can start, on cards of one node.
void AdmitterSession::obey(const AdmitterAnswer& answer, SimTime now) {
  const auto found = jobs_.find(answer.job);
  if (found == jobs_.end() || found->second.state != QueuedJob::State::waits) {
    throw PolicyFault("the queue policy named a job that does not wait");
  }
  QueuedJob& job = found->second;
  if (answer.action == Action::start) return start(job, answer, now);
  stop_waiting(job);
  job.reason = answer.reason;
  if (answer.action == Action::to_back) {
    job.ticket = next_ticket_++;
    wait(job);
  } else {
    job.state = answer.action == Action::refuse ? QueuedJob::State::refused : QueuedJob::State::failed;
  }
}

void AdmitterSession::start(QueuedJob& job, const AdmitterAnswer& answer, SimTime now) {
  const auto on_one_node = [&](CardId card) {
    return card < views_.size() && index_.node_of(card) == index_.node_of(answer.cards.front());
  };
  if (answer.cards.empty() || !std::ranges::all_of(answer.cards, on_one_node)) {
    throw PolicyFault("the queue policy named cards that are not of one node");
  }
  const std::set<CardId> different(answer.cards.begin(), answer.cards.end());
  if (std::cmp_not_equal(different.size(), job.demand.cards)) {
    throw PolicyFault("the queue policy named " + std::to_string(different.size()) +
                      " different cards for a job that takes " + std::to_string(job.demand.cards));
  }
  if (different.size() != answer.cards.size()) throw PolicyFault("the queue policy named a card twice");
  if (answer.split.variant > job.demand.variants.size()) {
    throw PolicyFault("the queue policy named a variant that the job does not have");
  }
  stop_waiting(job);
  job.state = QueuedJob::State::runs;
  job.since = now;
  job.cards = answer.cards;
  job.need = answer.need;
  job.used = 0;
  job.split = answer.split;
  job.reason = answer.reason;
  const SimTime end = job.expected == SimTime::max() ? job.expected : now + job.expected;
  running_.add(index_.node_of(job.cards.front()), {end, job.id, job.need, 0, job.cards});
  refresh();
}

void AdmitterSession::out_of_memory(JobId id, SimTime now) {
  QueuedJob& job = running(id, "ran out of memory");
  const std::int64_t batch = job.split.batch;
  stop_running(job);
  ++job.attempts;
  const AdmitterQuestion question{.event = QueueEvent::oom,
                                  .pass = pass_,
                                  .job = id,
                                  .group = waiting_.group_of(job.demand),
                                  .batch = batch,
                                  .attempts = job.attempts,
                                  .cluster = {views_, accounts_, waiting_, running_, index_}};
  const AdmitterAnswer answer = policy_->decide(question, {.time = now});
  job.reason = answer.reason;
  job.since = now;
  if (answer.action != Action::requeue) {
    job.state = QueuedJob::State::failed;
    return;
  }
  require_sound(answer.demand, views_.size());
  job.demand = answer.demand;
  job.reconsidered = false;
  job.asked = false;
  job.state = QueuedJob::State::waits;
  wait(job);
}

void AdmitterSession::leave(JobId id) {
  QueuedJob& job = find(id);
  if (job.state == QueuedJob::State::waits) stop_waiting(job);
  if (job.state == QueuedJob::State::runs) stop_running(job);
  jobs_.erase(id);
}

void AdmitterSession::set_used(JobId id, Bytes bytes) {
  QueuedJob& job = running(id, "uses memory");
  job.used = std::min(bytes, kMostMemory);
  running_.set_used(index_.node_of(job.cards.front()), id, job.used);
  refresh();
}

void AdmitterSession::set_foreign(CardId card, Bytes bytes) {
  if (card >= foreign_.size()) throw InputError("", "there is no card " + std::to_string(card) + ".");
  foreign_[card] = std::min(bytes, kMostMemory);
  running_.touch(index_.node_of(card));
  refresh();
}

const QueuedJob& AdmitterSession::job(JobId id) const {
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) return found->second;
  throw InputError("", "there is no job " + std::to_string(id) + " in the queue; it may have left.");
}

QueuedJob& AdmitterSession::find(JobId id) { return const_cast<QueuedJob&>(std::as_const(*this).job(id)); }

QueuedJob& AdmitterSession::running(JobId id, const char* what) {
  QueuedJob& job = find(id);
  if (job.state == QueuedJob::State::runs) return job;
  throw InputError("", "job " + std::to_string(id) + " (" + job.name + ") does not run, and " + what + ".");
}

AdmitterAnswer AdmitterSession::ask(QueueEvent event, const QueuedJob* job, SimTime now) {
  const AdmitterQuestion question{.event = event,
                                  .pass = pass_,
                                  .job = job != nullptr ? job->id : 0,
                                  .group = job != nullptr ? waiting_.group_of(job->demand) : 0,
                                  .cluster = {views_, accounts_, waiting_, running_, index_}};
  return policy_->decide(question, {.time = now});
}

void AdmitterSession::wait(QueuedJob& job) {
  waiting_.add(waiting_.group_of(job.demand), {job.ticket, job.id, job.submitted, job.expected});
}

void AdmitterSession::stop_waiting(const QueuedJob& job) {
  waiting_.remove(waiting_.group_of(job.demand), job.ticket);
}

void AdmitterSession::stop_running(QueuedJob& job) {
  running_.remove(index_.node_of(job.cards.front()), job.id);
  job.state = QueuedJob::State::failed;
  job.cards.clear();
  job.need = 0;
  job.used = 0;
  refresh();
}

void AdmitterSession::refresh() {
  for (CardId card = 0; card < views_.size(); ++card) {
    views_[card] = {.total = views_[card].total, .foreign = foreign_[card]};
  }
  for (const auto& [id, job] : jobs_) {
    if (job.state != QueuedJob::State::runs) continue;
    for (const CardId card : job.cards) {
      CardView& view = views_[card];
      view.allocated += job.used;
      view.reserved += job.used;
      view.promised += job.need;
      view.held += std::max(job.need, job.used);
      ++view.jobs;
    }
  }
  for (CardId card = 0; card < views_.size(); ++card) index_.set(card, policy_->available(views_[card]));
}

}  // namespace vramlab
