#include "sim/workload/job_queue_loop.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/error.hpp"
#include "sim/engine/simulation.hpp"

namespace vramlab {
namespace {

using Action = AdmitterAnswer::Action;

enum class What : std::uint8_t {
  arrival,
  pump,
  poll,
  deadline,
  take,
  phase_end,
  crash,
  limit,
  lease,
  stranger
};

struct Event {
  What what = What::pump;
  std::uint32_t job = 0;    ///< or stranger
  std::uint32_t epoch = 0;  ///< of the job, when the event was scheduled: a later one makes it void
};

/// Where a job stands.
struct Standing {
  GroupId group = 0;
  std::uint64_t ticket = 0;
  std::uint32_t epoch = 0;  ///< rises when it starts to wait, to run, or leaves
  std::size_t phase = 0;
  bool waits = false;
  bool runs = false;
  SimTime since{0};  ///< it waits or runs
  SimTime ran{0};    ///< in earlier stretches of this attempt (by phase)
  Bytes need = 0;    ///< promised on each card
  Bytes use = 0;     ///< taken on each card
};

class Loop {
 public:
  Loop(const JobQueueSetup& setup, Admitter& policy)
      : setup_(setup),
        policy_(policy),
        rules_(policy.rules()),
        books_(setup.cluster, policy, setup.keep_moments),
        running_(setup.cluster.nodes.size()),
        standings_(setup.jobs.size()),
        order_(setup.jobs.size()) {
    run_.jobs.resize(setup.jobs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return setup.jobs[a].arrival < setup.jobs[b].arrival;
    });
  }

  JobQueueRun run() {
    for (std::uint32_t i = 0; i < setup_.strangers.size(); ++i) {
      simulation_.schedule(setup_.strangers[i].from, {What::stranger, 2 * i, 0});
      if (setup_.strangers[i].to != SimTime::max()) {
        simulation_.schedule(setup_.strangers[i].to, {What::stranger, 2 * i + 1, 0});
      }
    }
    if (!order_.empty()) {
      run_.begin = setup_.jobs[order_.front()].arrival;
      simulation_.schedule(run_.begin, {What::arrival, 0, 0});
    }
    simulation_.run([&](const Event& event) { handle(event); });
    run_.overcommits = books_.overcommits();
    run_.alerts = books_.alerts();
    run_.byte_seconds = books_.byte_seconds(run_.end);
    run_.capacity = books_.capacity();
    run_.moments = books_.moments();
    return std::move(run_);
  }

 private:
  [[nodiscard]] SimTime now() const { return simulation_.now(); }
  [[nodiscard]] ClusterView view() {
    return {books_.cards(), books_.accounts(), waiting_, running_, books_.index()};
  }
  [[nodiscard]] Observation observation() const { return {.time = now()}; }

  void handle(const Event& event) {
    if (event.what == What::arrival) return arrive();
    if (event.what == What::stranger) return stranger(event.job);
    if (event.what == What::pump || event.what == What::poll) return pump(event.what);
    if (event.what == What::lease) return expire_lease(event.job);
    if (event.what == What::limit) return end_by_limit(event.job);
    if (standings_[event.job].epoch != event.epoch) return;  // what it was about is over
    if (event.what == What::deadline) {
      expiring_.push_back(event.job);
      request_pump();
    } else if (event.what == What::take) {
      take_memory(event.job);
    } else if (event.what == What::phase_end) {
      end_phase(event.job);
    } else if (event.what == What::crash) {
      crash(event.job);
    }
  }

  // All that happens in one moment comes first, then one look at the queue.
  void request_pump() {
    if (!std::exchange(pump_requested_, true)) simulation_.schedule(SimTime{0}, {What::pump, 0, 0});
  }
  void released() {
    if (rules_.poll == SimTime{0}) request_pump();
  }

  void arrive() {
    const SimTime moment = now();
    while (next_ < order_.size() && setup_.jobs[order_[next_]].arrival <= moment) submit(order_[next_++]);
    if (next_ < order_.size()) {
      simulation_.schedule(setup_.jobs[order_[next_]].arrival - moment, {What::arrival, 0, 0});
    }
    request_pump();
  }

  void submit(JobId job) {
    const JobSpec& spec = setup_.jobs[job];
    Standing& at = standings_[job];
    JobDemand demand = spec.demand;
    demand.effective = demand.batch;
    at.group = waiting_.group_of(rules_.per_phase ? demand_of_phase(job, demand) : demand);
    const ClusterView cluster = view();
    const AdmitterQuestion question{
        .event = QueueEvent::submitted, .job = job, .group = waiting_.group_of(demand), .cluster = cluster};
    const AdmitterAnswer answer = policy_.decide(question, observation());
    if (answer.action == Action::refuse) return leave(job, JobOutcome::refused, answer.reason);
    if (rules_.job_timeout > SimTime{0}) simulation_.schedule(rules_.job_timeout, {What::limit, job, 0});
    enqueue(job, next_ticket_++);
  }

  [[nodiscard]] JobDemand demand_of_phase(JobId job, JobDemand demand) const {
    const JobPhase& phase = setup_.jobs[job].phases[standings_[job].phase];
    if (!phase.need) return demand;
    demand.fixed = *phase.need;
    demand.per_sample = 0;
    demand.share_milli = 0;
    return demand;
  }

  void enqueue(JobId job, std::uint64_t ticket) {
    const JobSpec& spec = setup_.jobs[job];
    Standing& at = standings_[job];
    at.ticket = ticket;
    at.waits = true;
    at.since = now();
    ++at.epoch;
    waiting_.add(at.group, {ticket, job, spec.arrival, expected_rest(job)});
    run_.most_pending = std::max(run_.most_pending, static_cast<std::int64_t>(waiting_.size()));
    if (rules_.wait_timeout > SimTime{0}) {
      simulation_.schedule(rules_.wait_timeout, {What::deadline, job, at.epoch});
    }
    if (rules_.poll > SimTime{0} && !std::exchange(polling_, true)) {
      simulation_.schedule(rules_.poll, {What::poll, 0, 0});
    }
  }

  [[nodiscard]] SimTime expected_rest(JobId job) const {
    const JobSpec& spec = setup_.jobs[job];
    if (spec.expected) return *spec.expected + setup_.start_up;
    SimTime rest = setup_.start_up;
    const std::size_t end = rules_.per_phase ? standings_[job].phase + 1 : spec.phases.size();
    for (std::size_t i = standings_[job].phase; i < end; ++i) rest += spec.phases[i].duration;
    return rest;
  }

  void pump(What what) {
    if (what == What::poll) {
      polling_ = !waiting_.empty();
      if (polling_) simulation_.schedule(rules_.poll, {What::poll, 0, 0});
    } else {
      pump_requested_ = false;
    }
    ++pass_;
    for (;;) {
      const ClusterView cluster = view();
      const AdmitterAnswer answer = policy_.decide({.pass = pass_, .cluster = cluster}, observation());
      if (answer.action == Action::wait) break;
      obey(answer);
    }
    const std::vector<JobId> expiring = std::exchange(expiring_, {});
    for (const JobId job : expiring) {
      if (!standings_[job].waits) continue;
      const ClusterView cluster = view();
      obey(policy_.decide({.event = QueueEvent::deadline,
                           .pass = pass_,
                           .job = job,
                           .group = standings_[job].group,
                           .cluster = cluster},
                          observation()));
    }
  }

  // The policy is not trusted: only a job that waits can start, on cards of one node.
  void obey(const AdmitterAnswer& answer) {
    if (answer.job >= standings_.size() || !standings_[answer.job].waits) {
      throw InternalError("a queue policy named a job that does not wait");
    }
    if (answer.action == Action::start) return start(answer);
    Standing& at = standings_[answer.job];
    waiting_.remove(at.group, at.ticket);
    if (answer.action == Action::to_back) {
      at.ticket = next_ticket_++;
      waiting_.add(at.group,
                   {at.ticket, answer.job, setup_.jobs[answer.job].arrival, expected_rest(answer.job)});
      return;
    }
    stop_waiting(answer.job);
    leave(answer.job, answer.action == Action::refuse ? JobOutcome::refused : JobOutcome::wait_timeout,
          answer.reason);
  }

  void stop_waiting(JobId job) {
    Standing& at = standings_[job];
    run_.jobs[job].waited += now() - at.since;
    at.waits = false;
    ++at.epoch;
  }

  void start(const AdmitterAnswer& answer) {
    const JobId job = answer.job;
    Standing& at = standings_[job];
    JobRecord& record = run_.jobs[job];
    check_cards(answer.cards);
    waiting_.remove(at.group, at.ticket);
    stop_waiting(job);
    at.runs = true;
    at.since = now();
    at.need = answer.need;
    at.use = 0;
    if (record.starts == 0) record.first_start = now();
    ++record.starts;
    record.split = answer.split;
    record.cards = answer.cards;
    books_.promise(record.cards, at.need, account_of(job), now());
    list_running(job, now() + expected_rest(job));
    run_.most_promised = std::max(run_.most_promised, books_.promised());
    run_.most_active = std::max(run_.most_active, ++active_);
    const SimTime crash_after = setup_.jobs[job].crash_after;
    if (crash_after != SimTime::max()) {
      simulation_.schedule(std::max(SimTime{0}, crash_after - at.ran), {What::crash, job, at.epoch});
    }
    if (setup_.start_up > SimTime{0}) {
      simulation_.schedule(setup_.start_up, {What::take, job, at.epoch});
    } else {
      take_memory(job);
    }
  }

  void check_cards(const std::vector<CardId>& cards) const {
    bool good = !cards.empty();
    for (const CardId card : cards) {
      good = good && card < books_.index().card_count() &&
             books_.index().node_of(card) == books_.index().node_of(cards.front());
    }
    if (!good) throw InternalError("a queue policy named cards that are not of one node");
  }

  [[nodiscard]] std::uint32_t account_of(JobId job) const { return setup_.jobs[job].demand.account; }
  [[nodiscard]] NodeId node_of(JobId job) const {
    return books_.index().node_of(run_.jobs[job].cards.front());
  }

  void list_running(JobId job, SimTime expected_end) {
    const Standing& at = standings_[job];
    running_.add(node_of(job), {.expected_end = expected_end,
                                .job = job,
                                .promised = at.need,
                                .used = at.use,
                                .cards = run_.jobs[job].cards});
  }

  [[nodiscard]] Bytes use_of(JobId job) const {
    const JobPhase& phase = setup_.jobs[job].phases[standings_[job].phase];
    if (!phase.fixed_use) return standings_[job].need;
    return *phase.fixed_use + phase.use_per_sample * static_cast<Bytes>(run_.jobs[job].split.batch);
  }

  void take_memory(JobId job) {
    Standing& at = standings_[job];
    const Bytes use = use_of(job);
    const Bytes before = std::exchange(at.use, 0);
    if (before > 0) books_.give(run_.jobs[job].cards, at.need, before, now());
    if (!books_.take(run_.jobs[job].cards, at.need, use, now())) return run_out(job);
    at.use = use;
    running_.set_used(node_of(job), job, use);
    if (use < before) released();
    simulation_.schedule(setup_.jobs[job].phases[at.phase].duration, {What::phase_end, job, at.epoch});
  }

  void end_phase(JobId job) {
    Standing& at = standings_[job];
    const JobSpec& spec = setup_.jobs[job];
    if (++at.phase == spec.phases.size()) {
      release(job);
      return leave(job, JobOutcome::completed, {});
    }
    if (!rules_.per_phase || !spec.phases[at.phase].need) return take_memory(job);
    at.ran += now() - at.since;
    release(job);
    JobDemand demand = spec.demand;
    demand.effective = demand.batch;
    at.group = waiting_.group_of(demand_of_phase(job, demand));
    enqueue(job, at.ticket);
    request_pump();
  }

  // The one way out of running, whatever the reason: memory back, promise back, waiters looked at.
  void release(JobId job) {
    release_memory(job);
    withdraw(job);
  }
  void release_memory(JobId job) {
    Standing& at = standings_[job];
    if (at.use > 0) books_.give(run_.jobs[job].cards, at.need, at.use, now());
    at.use = 0;
    at.runs = false;
    ++at.epoch;
    --active_;
    running_.touch(node_of(job));
    released();
  }
  void withdraw(JobId job) {
    books_.withdraw(run_.jobs[job].cards, standings_[job].need, account_of(job), now());
    running_.remove(node_of(job), job);
    released();
  }

  void run_out(JobId job) {
    Standing& at = standings_[job];
    JobRecord& record = run_.jobs[job];
    ++record.ooms;
    const SimTime ran = at.ran + (now() - at.since);
    record.wasted += ran * static_cast<std::int64_t>(record.cards.size());
    release(job);
    at.phase = 0;
    at.ran = SimTime{0};
    const ClusterView cluster = view();
    const AdmitterAnswer answer = policy_.decide({.event = QueueEvent::oom,
                                                  .job = job,
                                                  .group = at.group,
                                                  .batch = record.split.batch,
                                                  .attempts = record.ooms,
                                                  .cluster = cluster},
                                                 observation());
    if (answer.action != Action::requeue) return leave(job, JobOutcome::out_of_memory, answer.reason);
    record.reason = answer.reason;
    at.group = waiting_.group_of(rules_.per_phase ? demand_of_phase(job, answer.demand) : answer.demand);
    enqueue(job, at.ticket);
    request_pump();
  }

  // The driver takes a dead process's memory back at once; its promise stands until its lease runs out.
  void crash(JobId job) {
    release_memory(job);
    leave(job, JobOutcome::crashed, "its owner died");
    if (rules_.lease > SimTime{0}) simulation_.schedule(rules_.lease, {What::lease, job, 0});
  }
  void expire_lease(JobId job) {
    withdraw(job);
    request_pump();
  }

  void end_by_limit(JobId job) {
    Standing& at = standings_[job];
    if (at.waits) {
      waiting_.remove(at.group, at.ticket);
      stop_waiting(job);
    } else if (at.runs) {
      release(job);
    } else {
      return;
    }
    leave(job, JobOutcome::job_timeout, "did not end within the time a job may take");
  }

  void leave(JobId job, JobOutcome outcome, std::string reason) {
    JobRecord& record = run_.jobs[job];
    record.outcome = outcome;
    record.end = now();
    if (!reason.empty()) record.reason = std::move(reason);
    run_.end = std::max(run_.end, now());
  }

  void stranger(std::uint32_t number) {
    const Stranger& one = setup_.strangers[number / 2];
    const auto bytes = static_cast<std::int64_t>(one.bytes);
    books_.stranger(one.card, number % 2 == 0 ? bytes : -bytes, now());
    running_.touch(books_.index().node_of(one.card));
    if (number % 2 == 1) released();
  }

  const JobQueueSetup& setup_;
  Admitter& policy_;
  QueueRules rules_;
  Simulation<Event> simulation_;
  ClusterBooks books_;
  WaitingJobs waiting_;
  RunningJobs running_;
  std::vector<Standing> standings_;
  std::vector<std::uint32_t> order_;  ///< jobs by arrival
  std::size_t next_ = 0;              ///< of `order_`
  std::uint64_t next_ticket_ = 0;
  std::uint64_t pass_ = 0;
  bool pump_requested_ = false;
  bool polling_ = false;
  std::int64_t active_ = 0;
  std::vector<JobId> expiring_;
  JobQueueRun run_;
};

void check_jobs(const JobQueueSetup& setup) {
  for (const JobSpec& job : setup.jobs) {
    const bool good =
        !job.phases.empty() && std::all_of(job.phases.begin(), job.phases.end(),
                                           [](const JobPhase& p) { return p.duration > SimTime{0}; });
    if (!good) throw InputError("", "the job \"" + job.name + "\" has no phase, or one that takes no time.");
  }
}

}  // namespace

JobQueueRun run_job_queue(const JobQueueSetup& setup, Admitter& policy) {
  check_jobs(setup);
  return Loop{setup, policy}.run();
}

}  // namespace vramlab
