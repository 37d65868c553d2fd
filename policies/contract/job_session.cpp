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
ClusterSetup cluster_of(const std::vector<Bytes>& cards) {
  ClusterSetup cluster;
  for (CardId card = 0; card < cards.size(); ++card) {
    const auto pool = std::ranges::find(cluster.pools, cards[card], &CardPool::total);
    const auto number = static_cast<std::uint32_t>(pool - cluster.pools.begin());
    if (pool == cluster.pools.end()) cluster.pools.push_back({cards[card]});
    if (!cluster.nodes.empty() && cluster.nodes.back().pool == number) {
      ++cluster.nodes.back().count;
    } else {
      cluster.nodes.push_back({number, card, 1});
    }
  }
  return cluster;
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

std::vector<Problem> problems_of(const JobDemand& demand, std::size_t cards, std::size_t accounts) {
  std::vector<Problem> problems;
  const auto require = [&](bool holds, const char* where, const std::string& allowed) {
    if (!holds) problems.push_back({where, "is out of range. Allowed: " + allowed + "."});
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
  require(demand.account < accounts, "/account", accounts == 1 ? "0" : "the number of a quota");
  return problems;
}

void require_sound(const JobDemand& demand, std::size_t cards) {
  std::vector<Problem> problems = problems_of(demand, cards, 1);
  if (demand.share_milli == 0 && demand.fixed + demand.per_sample == 0) {
    problems.push_back({"/need", "is out of range. Allowed: more than nothing; a job says what it takes."});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

// The policy is not trusted with what a job asks for from now on.
void require_possible(const JobDemand& demand, std::size_t cards, std::size_t accounts) {
  const std::vector<Problem> problems = problems_of(demand, cards, accounts);
  if (problems.empty()) return;
  throw PolicyFault("the queue policy let a job wait again whose " + problems.front().where.substr(1) + ' ' +
                    problems.front().what);
}

// A job may say that it runs for ever.
SimTime later(SimTime from, SimTime span) { return span == SimTime::max() ? span : from + span; }

}  // namespace

AdmitterSession::AdmitterSession(Admitter& policy, const ClusterSetup& cluster, QueueHost* host)
    : policy_(policy),
      rules_(policy.rules()),
      host_(host != nullptr ? *host : usual_),
      index_(cluster.pools, cluster.nodes, rules_.placement),
      running_(cluster.nodes.size()) {
  for (const CardNode& node : cluster.nodes) {
    views_.resize(views_.size() + node.count, {.total = cluster.pools[node.pool].total});
  }
  for (const auto& quota : cluster.quotas) accounts_.push_back({quota, 0});
  for (CardId card = 0; card < views_.size(); ++card) changed(card);
}

AdmitterSession::AdmitterSession(Admitter& policy, const ClusterSetup& cluster, QueueHost& host)
    : AdmitterSession(policy, cluster, &host) {}

AdmitterSession::AdmitterSession(std::unique_ptr<Admitter> policy, const std::vector<Bytes>& cards)
    : AdmitterSession(*policy, cluster_of(checked_cards(cards)), nullptr) {
  owned_ = std::move(policy);
}

void AdmitterSession::restore(QueueBooks books) {
  if (books.foreign.size() != views_.size()) throw InputError("/foreign", "is of another number of cards.");
  if (!jobs_.empty()) throw InputError("", "a session that has jobs cannot go on from another's books.");
  for (CardId card = 0; card < views_.size(); ++card) set_foreign(card, books.foreign[card]);
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
    job.group = waiting_.group_of(job.demand);
    job.held.clear();
    QueuedJob& kept = jobs_.emplace(job.id, std::move(job)).first->second;
    if (kept.state == QueuedJob::State::waits) wait(kept);
    if (runs) {
      run(kept, later(kept.since, host_.expected(kept, kept.split.variant)));
      set_used(kept.id, kept.used);
    }
  }
  for (const auto& [id, job] : jobs_) {  // what the policy was told by the sessions before
    if (!is_over(job)) ask(QueueEvent::submitted, &job, job.submitted);
  }
}

QueueBooks AdmitterSession::books() const {
  QueueBooks books{.next_id = next_id_, .next_ticket = next_ticket_};
  for (const CardView& card : views_) books.foreign.push_back(card.foreign);
  for (const auto& [id, job] : jobs_) books.jobs.push_back(job);
  return books;
}

JobId AdmitterSession::submit(QueuedJob given, SimTime now) {
  given.demand.effective = given.demand.batch;
  require_sound(given.demand, views_.size());
  return submit_as(next_id_, std::move(given), now).id;
}

const QueuedJob& AdmitterSession::submit_as(JobId id, QueuedJob given, SimTime now) {
  QueuedJob job{.id = id,
                .name = std::move(given.name),
                .demand = std::move(given.demand),
                .submitted = now,
                .since = now,
                .expected = given.expected,
                .patience = given.patience,
                .ticket = next_ticket_};
  job.group = waiting_.group_of(job.demand);
  const AdmitterAnswer answer = ask(QueueEvent::submitted, &job, now);
  job.reason = answer.reason;
  if (answer.action == Action::refuse) {
    job.state = QueuedJob::State::refused;
  } else {
    if (JobDemand asked = job.demand; host_.asks_otherwise(job, asked)) ask_for(job, std::move(asked));
    wait(job);
  }
  ++next_ticket_;
  next_id_ = std::max(next_id_, id + 1);
  return jobs_.emplace(id, std::move(job)).first->second;
}

void AdmitterSession::examine(SimTime now) {
  do {
    begin_look();
    while (look(now)) {
    }
  } while (end_waits(now));
}

void AdmitterSession::begin_look() {
  ++pass_;
  waiting_.begin_pass();
  answers_left_ = kMostAnswersAJob * (1 + waiting_.size());
}

std::optional<JobId> AdmitterSession::look(SimTime now) {
  const AdmitterAnswer answer = ask(QueueEvent::examine, nullptr, now);
  if (answer.action == Action::wait) return std::nullopt;
  if (answers_left_-- == 0) throw PolicyFault("the queue policy gave answers at one moment without an end");
  obey(answer, now);
  return answer.job;
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
    if (job.state != QueuedJob::State::waits) continue;
    if (end_wait(id, now) != WaitEnd::waits_on || end_patience(job, now)) changed = true;
  }
  return changed;
}

WaitEnd AdmitterSession::end_wait(JobId id, SimTime now) {
  QueuedJob& job = find(id);
  const AdmitterAnswer answer = ask(QueueEvent::deadline, &job, now);
  if (answer.action == Action::requeue) {
    if (std::exchange(job.reconsidered, true)) {
      throw PolicyFault("the queue policy changed the demand of a waiting job twice in one wait");
    }
    require_possible(answer.demand, views_.size(), accounts_.size());
    stop_waiting(job);
    ask_for(job, answer.demand);
    wait(job);
    return WaitEnd::asks_anew;
  }
  if (answer.action == Action::wait) {
    job.asked = true;
    return WaitEnd::waits_on;
  }
  if (answer.job != id)
    throw PolicyFault("the queue policy answered about another job than it was asked for");
  obey(answer, now);
  return WaitEnd::over;
}

// What the job itself says of how long it waits.
bool AdmitterSession::end_patience(QueuedJob& job, SimTime now) {
  if (job.patience == SimTime{0} || now - job.since < job.patience) return false;
  const std::string why = why_waiting(job.id);
  stop_waiting(job);
  job.state = QueuedJob::State::failed;
  job.reason = "no memory within " + fixed_point(to_seconds(job.patience), 1) + " s" +
               (why.empty() ? "" : ": " + why) + ".";
  return true;
}

std::string AdmitterSession::why_waiting(JobId id) { return policy_.why_waiting(job(id).group, view()); }

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
  run(job, later(now, host_.expected(job, job.split.variant)));
}

void AdmitterSession::run(QueuedJob& job, SimTime end) {
  job.held.assign(job.cards.size(), {});
  shift_promise(job, 1);
  running_.add(index_.node_of(job.cards.front()), {end, job.id, job.need, 0, job.cards});
}

// Its need is added for `jobs` = 1, and taken off for −1; sums of bytes wrap where they fall, as intended.
void AdmitterSession::shift_promise(const QueuedJob& job, int jobs) {
  const Bytes change = jobs > 0 ? job.need : -job.need;
  for (const CardId card : job.cards) {
    CardView& view = views_[card];
    view.promised += change;
    view.held += change;
    view.jobs += jobs;
    changed(card);
  }
  accounts_[job.demand.account].promised += change * static_cast<Bytes>(job.cards.size());
  host_.promise_changed(job, jobs > 0);
}

void AdmitterSession::out_of_memory(JobId id, SimTime now) {
  QueuedJob& job = running(id, "ran out of memory");
  stop_running(job);
  ++job.attempts;
  const AdmitterQuestion question{.event = QueueEvent::oom,
                                  .pass = pass_,
                                  .job = id,
                                  .group = job.group,
                                  .batch = job.split.batch,
                                  .attempts = job.attempts,
                                  .cluster = view()};
  const AdmitterAnswer answer = policy_.decide(question, {.time = now});
  job.reason = answer.reason;
  job.since = now;
  if (answer.action != Action::requeue) return;
  require_possible(answer.demand, views_.size(), accounts_.size());
  wait_anew(job, answer.demand, now);
}

void AdmitterSession::wait_again(JobId id, JobDemand demand, SimTime now) {
  QueuedJob& job = running(id, "begins its next phase");
  stop_running(job);
  wait_anew(job, std::move(demand), now);
}

void AdmitterSession::wait_anew(QueuedJob& job, JobDemand demand, SimTime now) {
  static_cast<void>(host_.asks_otherwise(job, demand));
  ask_for(job, std::move(demand));
  job.since = now;
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
  for (std::size_t i = 0; i < job.cards.size(); ++i) set_holding(id, i, {job.used, job.used});
  set_reserved_for(id, job.used);
}

void AdmitterSession::set_holding(JobId id, std::size_t place, const Holding& now) {
  QueuedJob& job = find(id);
  Holding& before = job.held.at(place);
  if (now == before) return;
  CardView& view = views_[job.cards[place]];
  view.allocated += now.allocated - before.allocated;  // wraps where it falls, as intended
  view.reserved += now.reserved - before.reserved;
  view.held += std::max(job.need, now.reserved) - std::max(job.need, before.reserved);
  before = now;
  changed(job.cards[place]);
}

void AdmitterSession::set_reserved_for(JobId id, Bytes bytes) {
  running_.set_used(index_.node_of(job(id).cards.front()), id, bytes);
}

void AdmitterSession::set_foreign(CardId card, Bytes bytes) {
  if (card >= views_.size()) throw InputError("", "there is no card " + std::to_string(card) + ".");
  views_[card].foreign = std::min(bytes, kMostMemory);
  running_.touch(index_.node_of(card));
  changed(card);
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
                                  .group = job != nullptr ? job->group : 0,
                                  .cluster = view()};
  return policy_.decide(question, {.time = now});
}

void AdmitterSession::ask_for(QueuedJob& job, JobDemand demand) {
  job.demand = std::move(demand);
  job.group = waiting_.group_of(job.demand);
}

void AdmitterSession::wait(const QueuedJob& job) {
  waiting_.add(job.group, {job.ticket, job.id, job.submitted, host_.expected(job, 0)});
}

void AdmitterSession::stop_waiting(const QueuedJob& job) { waiting_.remove(job.group, job.ticket); }

// The one way out of running: memory back, promise back.
void AdmitterSession::stop_running(QueuedJob& job) {
  for (std::size_t i = 0; i < job.cards.size(); ++i) set_holding(job.id, i, {});
  shift_promise(job, -1);
  running_.remove(index_.node_of(job.cards.front()), job.id);
  job.state = QueuedJob::State::failed;
  job.cards.clear();
  job.held.clear();
  job.need = 0;
  job.used = 0;
}

}  // namespace vramlab
