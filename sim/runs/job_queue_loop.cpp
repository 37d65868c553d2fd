#include "sim/runs/job_queue_loop.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "sim/runs/job.hpp"
#include "sim/runs/job_execution.hpp"

namespace vramlab {
namespace {

using Kind = JobEvent::Kind;

// Where a job stands; what becomes of it is in its JobRecord.
struct JobStanding {
  GroupId group = 0;
  std::uint64_t ticket = 0;
  std::uint32_t epoch = 0;  ///< rises when it starts to wait, to run, or leaves
  std::size_t phase = 0;
  bool waits = false;
  bool runs = false;
  bool reconsidered = false;  ///< its demand changed while it waited
  SimTime since{0};           ///< it waits or runs
  SimTime ran{0};             ///< in earlier stretches of this attempt (by phase)
  Bytes need = 0;             ///< promised on each card
};

class Loop {
 public:
  Loop(const JobQueueSetup& setup, Admitter& policy)
      : setup_(setup),
        policy_(policy),
        rules_(policy.rules()),
        books_(setup.cluster, policy, setup.keep_moments),
        execution_(setup.steps ? step_execution(setup.jobs, *setup.steps, books_, simulation_)
                               : declared_execution(setup.jobs, books_, simulation_)),
        monitor_(setup.keep_moments, setup.jobs.size()),
        running_(setup.cluster.nodes.size()),
        cluster_{books_.cards(), books_.accounts(), waiting_, running_, books_.index()},
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
      simulation_.schedule(setup_.strangers[i].from, {Kind::stranger, 2 * i, 0});
      if (setup_.strangers[i].to != SimTime::max()) {
        simulation_.schedule(setup_.strangers[i].to, {Kind::stranger, 2 * i + 1, 0});
      }
    }
    if (!order_.empty()) {
      run_.begin = setup_.jobs[order_.front()].arrival;
      simulation_.schedule(run_.begin, {Kind::arrival, 0, 0});
    }
    simulation_.run([&](const JobEvent& event) {
      try {
        handle(event);
      } catch (const PolicyFault& fault) {
        end_early(fault.what());
      }
      monitor_.look(books_, waiting_, active_, now());
    });
    explain_pending();
    static_cast<ClusterRecord&>(run_) = books_.take_record(run_.end);
    run_.stays = monitor_.take_stays();
    run_.monitored = monitor_.take_moments();
    return std::move(run_);
  }

 private:
  [[nodiscard]] SimTime now() const { return simulation_.now(); }

  // Of jobs that nothing ends any more.
  void explain_pending() {
    for (JobId job = 0; job < run_.jobs.size(); ++job) {
      if (run_.jobs[job].outcome != JobOutcome::pending) continue;
      if (standings_[job].waits) run_.jobs[job].reason = why_waiting(job);
      if (!standings_[job].runs) continue;
      run_.jobs[job].reason = "ran when the run ended early";
      keep_tuning(job);
    }
  }
  [[nodiscard]] std::string why_waiting(JobId job) const {
    return policy_.why_waiting(standings_[job].group, cluster_);
  }

  void end_early(const std::string& reason) {
    run_.ended_early = reason;
    run_.end = std::max(run_.end, now());
    simulation_.stop();
  }

  [[nodiscard]] AdmitterAnswer ask(const AdmitterQuestion& question) {
    return policy_.decide(question, {.time = now()});
  }

  void handle(const JobEvent& event) {
    if (event.kind == Kind::arrival) return arrive();
    if (event.kind == Kind::stranger) return stranger(event.job);
    if (event.kind == Kind::pump || event.kind == Kind::poll) return pump(event.kind);
    if (event.kind == Kind::lease) return expire_lease(event.job);
    if (event.kind == Kind::limit) return end_by_limit(event.job);
    if (event.kind == Kind::work) return work(event.job);
    if (standings_[event.job].epoch != event.epoch) return;  // what it was about is over
    if (event.kind == Kind::deadline) {
      expiring_.push_back(event.job);
      request_pump();
    } else if (event.kind == Kind::take) {
      take_memory(event.job);
    } else if (event.kind == Kind::crash) {
      crash(event.job);
    }
  }

  // All that happens in one moment comes first, then one look at the queue.
  void request_pump() {
    if (!std::exchange(pump_requested_, true)) simulation_.schedule(SimTime{0}, {Kind::pump, 0, 0});
  }
  void released() {
    if (rules_.poll == SimTime{0}) request_pump();
  }

  void arrive() {
    const SimTime moment = now();
    while (next_ < order_.size() && setup_.jobs[order_[next_]].arrival <= moment) submit(order_[next_++]);
    if (next_ < order_.size()) {
      simulation_.schedule(setup_.jobs[order_[next_]].arrival - moment, {Kind::arrival, 0, 0});
    }
    request_pump();
  }

  void submit(JobId job) {
    const JobSpec& spec = setup_.jobs[job];
    JobStanding& at = standings_[job];
    JobDemand demand = spec.demand;
    demand.effective = demand.batch;
    at.group = group_of(job, demand);
    const AdmitterAnswer answer = ask({.event = QueueEvent::submitted,
                                       .job = job,
                                       .group = waiting_.group_of(demand),
                                       .cluster = cluster_});
    if (answer.action == AdmitterAnswer::Action::refuse)
      return leave(job, JobOutcome::refused, answer.reason);
    if (rules_.job_timeout > SimTime{0}) simulation_.schedule(rules_.job_timeout, {Kind::limit, job, 0});
    enqueue(job, next_ticket_++);
  }

  // Where a policy admits by phase, what the phase asks for takes the place of the job's need.
  [[nodiscard]] GroupId group_of(JobId job, JobDemand demand) {
    const JobPhase& phase = setup_.jobs[job].phases[standings_[job].phase];
    if (rules_.per_phase && phase.need) {
      demand.fixed = *phase.need;
      demand.per_sample = 0;
      demand.share_milli = 0;
      demand.variants.clear();
    }
    return waiting_.group_of(demand);
  }

  void enqueue(JobId job, std::uint64_t ticket) {
    const JobSpec& spec = setup_.jobs[job];
    JobStanding& at = standings_[job];
    at.ticket = ticket;
    at.waits = true;
    at.reconsidered = false;
    at.since = now();
    ++at.epoch;
    waiting_.add(at.group, {ticket, job, spec.arrival, expected_rest(job)});
    run_.most_pending = std::max(run_.most_pending, static_cast<std::int64_t>(waiting_.size()));
    if (rules_.wait_timeout > SimTime{0}) {
      simulation_.schedule(rules_.wait_timeout, {Kind::deadline, job, at.epoch});
    }
    if (rules_.poll > SimTime{0} && !std::exchange(polling_, true)) {
      simulation_.schedule(rules_.poll, {Kind::poll, 0, 0});
    }
  }

  // How long it says it runs from its phase on, or in that phase alone.
  [[nodiscard]] SimTime expected_rest(JobId job, std::size_t variant = 0) const {
    const JobSpec& spec = setup_.jobs[job];
    const std::vector<JobPhase>& phases = spec.phases_of(variant);
    if (spec.expected) return setup_.start_up + *spec.expected;
    SimTime rest = setup_.start_up;
    const std::size_t phase = standings_[job].phase;
    const std::size_t end = rules_.per_phase ? phase + 1 : phases.size();
    for (std::size_t i = phase; i < end; ++i) rest += phases[i].duration;
    return rest;
  }

  void pump(Kind kind) {
    std::optional<EventId> next_poll;
    if (kind == Kind::poll) {
      polling_ = !waiting_.empty();
      if (polling_) next_poll = simulation_.schedule(rules_.poll, {Kind::poll, 0, 0});
    } else {
      pump_requested_ = false;
    }
    ++pass_;
    waiting_.begin_pass();
    for (;;) {
      const AdmitterAnswer answer = ask({.pass = pass_, .cluster = cluster_});
      if (answer.action == AdmitterAnswer::Action::wait) break;
      obey(answer);
    }
    const std::vector<JobId> expiring = std::exchange(expiring_, {});
    for (const JobId job : expiring) {
      if (standings_[job].waits) expire(job);
    }
    if (next_poll && simulation_.pending() == 1) {  // nothing else is to come: nothing will change
      simulation_.cancel(*next_poll);
      polling_ = false;
    }
  }

  void expire(JobId job) {
    const AdmitterAnswer answer = ask({.event = QueueEvent::deadline,
                                       .pass = pass_,
                                       .job = job,
                                       .group = standings_[job].group,
                                       .cluster = cluster_});
    if (answer.action == AdmitterAnswer::Action::wait) return;
    if (answer.action == AdmitterAnswer::Action::requeue) return reconsider(job, answer.demand);
    released();  // it may have stood in another's way
    obey(answer);
  }

  // It keeps its place with another demand, is looked at in its turn, and if it then still waits, the policy
  // is asked once more.
  void reconsider(JobId job, const JobDemand& demand) {
    JobStanding& at = standings_[job];
    if (std::exchange(at.reconsidered, true)) {
      throw PolicyFault("the queue policy changed the demand of a waiting job twice in one wait");
    }
    waiting_.remove(at.group, at.ticket);
    at.group = waiting_.group_of(demand);
    waiting_.add(at.group, {at.ticket, job, setup_.jobs[job].arrival, expected_rest(job)});
    expiring_.push_back(job);
    request_pump();
  }

  // The policy is not trusted: only a job that waits can start, on cards of one node.
  void obey(const AdmitterAnswer& answer) {
    if (answer.job >= standings_.size() || !standings_[answer.job].waits) {
      throw PolicyFault("the queue policy named a job that does not wait");
    }
    if (answer.action == AdmitterAnswer::Action::start) return start(answer);
    JobStanding& at = standings_[answer.job];
    waiting_.remove(at.group, at.ticket);
    if (answer.action == AdmitterAnswer::Action::to_back) {
      at.ticket = next_ticket_++;
      waiting_.add(at.group,
                   {at.ticket, answer.job, setup_.jobs[answer.job].arrival, expected_rest(answer.job)});
      return;
    }
    stop_waiting(answer.job);
    leave(answer.job,
          answer.action == AdmitterAnswer::Action::refuse ? JobOutcome::refused : JobOutcome::wait_timeout,
          answer.reason);
  }

  void stop_waiting(JobId job) {
    JobStanding& at = standings_[job];
    run_.jobs[job].waited += now() - at.since;
    at.waits = false;
    ++at.epoch;
  }

  void start(const AdmitterAnswer& answer) {
    const JobId job = answer.job;
    JobStanding& at = standings_[job];
    JobRecord& record = run_.jobs[job];
    if (!books_.of_one_node(answer.cards)) {
      throw PolicyFault("the queue policy named cards that are not of one node");
    }
    const std::set<CardId> different(answer.cards.begin(), answer.cards.end());
    if (const auto asked = waiting_.demand(at.group).cards; std::cmp_not_equal(different.size(), asked)) {
      throw PolicyFault("the queue policy named " + std::to_string(different.size()) +
                        " different cards for a job that takes " + std::to_string(asked));
    }
    if (different.size() != answer.cards.size()) throw PolicyFault("the queue policy named a card twice");
    if (answer.split.variant > setup_.jobs[job].variants.size()) {
      throw PolicyFault("the queue policy named a variant that the job does not have");
    }
    waiting_.remove(at.group, at.ticket);
    stop_waiting(job);
    at.runs = true;
    at.since = now();
    at.need = answer.need;
    if (record.starts == 0) record.first_start = now();
    ++record.starts;
    record.split = answer.split;
    record.cards = answer.cards;
    record.need = answer.need;
    if (!answer.reason.empty()) record.reason = answer.reason;
    books_.promise(record.cards, at.need, account_of(job), now());
    running_.add(node_of(job), {.expected_end = now() + expected_rest(job, answer.split.variant),
                                .job = job,
                                .promised = at.need,
                                .used = 0,
                                .cards = record.cards});
    run_.most_promised = std::max(run_.most_promised, books_.sums().promised);
    run_.most_active = std::max(run_.most_active, ++active_);
    monitor_.admitted(job, record.cards, at.need, now());
    const SimTime crash_after = setup_.jobs[job].crash_after;
    if (crash_after != SimTime::max()) {
      simulation_.schedule(std::max(SimTime{0}, crash_after - at.ran), {Kind::crash, job, at.epoch});
    }
    if (setup_.start_up > SimTime{0}) {
      simulation_.schedule(setup_.start_up, {Kind::take, job, at.epoch});
    } else {
      take_memory(job);
    }
  }

  [[nodiscard]] std::uint32_t account_of(JobId job) const { return setup_.jobs[job].demand.account; }
  [[nodiscard]] NodeId node_of(JobId job) const {
    return books_.index().node_of(run_.jobs[job].cards.front());
  }

  void take_memory(JobId job) {
    const Admission admission{&run_.jobs[job].cards, standings_[job].need, run_.jobs[job].split,
                              rules_.enforces_promise};
    get_on(job, [&] { return execution_->enter(job, admission, standings_[job].phase); });
  }
  void work(JobId job) {
    get_on(job, [&] { return execution_->resume(job); });
  }

  template <class Work>
  void get_on(JobId job, const Work& work) {
    const Bytes before = execution_->used(job);
    const JobProgress progress = work();
    const Bytes used = execution_->used(job);
    monitor_.uses(job, used);
    JobRecord& record = run_.jobs[job];
    record.most_used = std::max(record.most_used, used);
    record.overran = record.overran || used > standings_[job].need;
    if (progress == JobProgress::out_of_memory) return run_out(job);
    if (progress == JobProgress::gave_up) return give_up(job);
    if (used != before) running_.set_used(node_of(job), job, used);
    if (used < before) released();
    if (progress == JobProgress::phase_done) end_phase(job);
  }

  void end_phase(JobId job) {
    JobStanding& at = standings_[job];
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
    at.group = group_of(job, demand);
    enqueue(job, at.ticket);
    request_pump();
  }

  // The one way out of running, whatever the reason: memory back, promise back, waiters looked at.
  void release(JobId job, bool ran_out = false) {
    release_memory(job, ran_out);
    withdraw(job);
  }
  void release_memory(JobId job, bool ran_out = false) {
    JobStanding& at = standings_[job];
    keep_tuning(job);
    execution_->leave(job);
    monitor_.left(job, ran_out, now());
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

  void keep_tuning(JobId job) {
    const JobTuning* tuning = execution_->tuning(job);
    if (tuning == nullptr) return;
    if (run_.jobs[job].tuning) {
      run_.jobs[job].tuning->add(*tuning);
    } else {
      run_.jobs[job].tuning = *tuning;
    }
  }

  void give_up(JobId job) {
    release(job);
    leave(job, JobOutcome::gave_up, execution_->shortage());
  }

  void run_out(JobId job) {
    JobStanding& at = standings_[job];
    JobRecord& record = run_.jobs[job];
    ++record.ooms;
    const SimTime ran = at.ran + (now() - at.since);
    record.wasted += ran * static_cast<std::int64_t>(record.cards.size());
    release(job, /*ran_out=*/true);
    at.phase = 0;
    at.ran = SimTime{0};
    const AdmitterAnswer answer = ask({.event = QueueEvent::oom,
                                       .job = job,
                                       .group = at.group,
                                       .batch = record.split.batch,
                                       .attempts = record.ooms,
                                       .cluster = cluster_});
    record.reason = answer.reason + (answer.reason.empty() ? "" : " ") + execution_->shortage();
    if (answer.action != AdmitterAnswer::Action::requeue) return leave(job, JobOutcome::out_of_memory, {});
    at.group = group_of(job, answer.demand);
    enqueue(job, at.ticket);
    request_pump();
  }

  // The driver takes a dead process's memory back at once; its promise stands until its lease runs out.
  void crash(JobId job) {
    release_memory(job);
    leave(job, JobOutcome::crashed, "its owner died");
    if (rules_.lease > SimTime{0}) simulation_.schedule(rules_.lease, {Kind::lease, job, 0});
  }
  void expire_lease(JobId job) {
    withdraw(job);
    request_pump();
  }

  void end_by_limit(JobId job) {
    JobStanding& at = standings_[job];
    std::string reason = "did not end within " +
                         std::to_string(rules_.job_timeout / std::chrono::seconds{1}) + " s of its arrival";
    if (at.waits) {
      const std::string why = why_waiting(job);
      if (!why.empty()) reason += ": " + why;
      waiting_.remove(at.group, at.ticket);
      stop_waiting(job);
      released();
    } else if (at.runs) {
      release(job);
    } else {
      return;
    }
    leave(job, JobOutcome::job_timeout, reason + ".");
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
    const bool comes = number % 2 == 0;
    books_.stranger(one.card, comes ? bytes : -bytes, now());
    execution_->strangers_changed(one.card, comes ? one.busy_milli : -one.busy_milli);
    running_.touch(books_.index().node_of(one.card));
    if (!comes) released();
  }

  const JobQueueSetup& setup_;
  Admitter& policy_;
  QueueRules rules_;
  JobClock simulation_;
  ClusterBooks books_;
  std::unique_ptr<JobExecution> execution_;
  QueueMonitor monitor_;
  WaitingJobs waiting_{[this](const JobDemand& demand) { return policy_.least_need(demand); }};
  RunningJobs running_;
  const ClusterView cluster_;  ///< of all these
  std::vector<JobStanding> standings_;
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

// Throws InputError for a job that cannot run as its variant; `steps`: they are simulated.
void require_sound(const JobSpec& job, std::size_t variant, bool steps) {
  const std::vector<JobPhase>& phases = job.phases_of(variant);
  const std::optional<JobModel>& model = job.model_of(variant);
  if (phases.empty() ||
      !std::ranges::all_of(phases, [](const JobPhase& p) { return p.duration > SimTime{0}; })) {
    throw InputError("", "the job \"" + job.name + "\" has no phase, or one that takes no time.");
  }
  if (phases.size() != job.phases.size() || job.variants.size() != job.demand.variants.size()) {
    throw InternalError("a variant of a job has other phases, or no need");
  }
  const bool is_simple = steps && phases.size() == 1 && job.variants.empty();
  if ((job.tuner && (!is_simple || !model)) || (job.composer && (!is_simple || model || job.tuner))) {
    throw InputError("", "the job \"" + job.name +
                             "\" has a tuner or a composer, which go with simulated steps, of a model or of "
                             "batches, without phases and variants.");
  }
  if (!steps || !model) return;
  const std::size_t parameters = model->workload->parameters().size();
  if (!std::ranges::all_of(phases,
                           [&](const JobPhase& p) { return p.steps > 0 && p.point.size() == parameters; })) {
    throw InputError("", "the job \"" + job.name + "\" has a phase without steps of its model.");
  }
}

}  // namespace

JobQueueRun run_job_queue(const JobQueueSetup& setup, Admitter& policy) {
  for (const JobSpec& job : setup.jobs) {
    for (std::size_t variant = 0; variant <= job.variants.size(); ++variant) {
      require_sound(job, variant, setup.steps.has_value());
    }
  }
  return Loop{setup, policy}.run();
}

}  // namespace vramlab
