#include "sim/runs/job_queue_loop.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "sim/runs/job.hpp"
#include "sim/runs/job_execution.hpp"

namespace vramlab {
namespace {

using Kind = JobEvent::Kind;
using State = QueuedJob::State;

// Where a job stands beside what the session knows of it; what becomes of it is in its JobRecord.
struct JobStanding {
  std::uint32_t epoch = 0;  ///< rises when it starts to wait, to run, or leaves
  std::size_t phase = 0;
  SimTime since{0};  ///< it waits or runs
  SimTime ran{0};    ///< in earlier stretches of this attempt (by phase)
};

class Loop final : private QueueHost {
 public:
  Loop(const JobQueueSetup& setup, Admitter& policy)
      : setup_(setup),
        rules_(policy.rules()),
        session_(policy, setup.cluster, *this),
        books_(session_, setup.keep_moments),
        execution_(setup.steps ? step_execution(setup.jobs, *setup.steps, books_, simulation_)
                               : declared_execution(setup.jobs, books_, simulation_)),
        monitor_(setup.keep_moments, setup.jobs.size()),
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
      monitor_.look(books_, session_.waiting(), active_, now());
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
      if (is(job, State::waits)) run_.jobs[job].reason = session_.why_waiting(job);
      if (!is(job, State::runs)) continue;
      run_.jobs[job].reason = "ran when the run ended early";
      keep_tuning(job);
    }
  }

  [[nodiscard]] bool is(JobId job, State state) const {
    const auto found = session_.jobs().find(job);
    return found != session_.jobs().end() && found->second.state == state;
  }

  void end_early(const std::string& reason) {
    run_.ended_early = reason;
    run_.end = std::max(run_.end, now());
    simulation_.stop();
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
    const QueuedJob& queued = session_.submit_as(job, {.demand = whole_demand(job)}, now());
    if (queued.state == State::refused) return leave(job, JobOutcome::refused, queued.reason);
    if (rules_.job_timeout > SimTime{0}) simulation_.schedule(rules_.job_timeout, {Kind::limit, job, 0});
    begin_wait(job);
  }

  [[nodiscard]] JobDemand whole_demand(JobId job) const {
    JobDemand demand = setup_.jobs[job].demand;
    demand.effective = demand.batch;
    return demand;
  }

  // Where a policy admits by phase, what the phase asks for takes the place of the job's need.
  [[nodiscard]] bool asks_otherwise(const QueuedJob& job, JobDemand& demand) const override {
    const JobPhase& phase = setup_.jobs[job.id].phases[standings_[job.id].phase];
    if (!rules_.per_phase || !phase.need) return false;
    demand.fixed = *phase.need;
    demand.per_sample = 0;
    demand.share_milli = 0;
    demand.variants.clear();
    return true;
  }

  void begin_wait(JobId job) {
    JobStanding& at = standings_[job];
    at.since = now();
    ++at.epoch;
    run_.most_pending = std::max(run_.most_pending, static_cast<std::int64_t>(session_.waiting().size()));
    if (rules_.wait_timeout > SimTime{0}) {
      simulation_.schedule(rules_.wait_timeout, {Kind::deadline, job, at.epoch});
    }
    if (rules_.poll > SimTime{0} && !std::exchange(polling_, true)) {
      simulation_.schedule(rules_.poll, {Kind::poll, 0, 0});
    }
  }
  void end_wait(JobId job) {
    run_.jobs[job].waited += now() - standings_[job].since;
    ++standings_[job].epoch;
  }

  // How long it says it runs from its phase on, or in that phase alone.
  [[nodiscard]] SimTime expected(const QueuedJob& job, std::size_t variant) const override {
    const JobSpec& spec = setup_.jobs[job.id];
    const std::vector<JobPhase>& phases = spec.phases_of(variant);
    if (spec.expected) return setup_.start_up + *spec.expected;
    SimTime rest = setup_.start_up;
    const std::size_t phase = standings_[job.id].phase;
    const std::size_t end = rules_.per_phase ? phase + 1 : phases.size();
    for (std::size_t i = phase; i < end; ++i) rest += phases[i].duration;
    return rest;
  }

  void pump(Kind kind) {
    std::optional<EventId> next_poll;
    if (kind == Kind::poll) {
      polling_ = !session_.waiting().empty();
      if (polling_) next_poll = simulation_.schedule(rules_.poll, {Kind::poll, 0, 0});
    } else {
      pump_requested_ = false;
    }
    session_.begin_look();
    while (const auto job = session_.look(now())) follow(*job);
    const std::vector<JobId> expiring = std::exchange(expiring_, {});
    for (const JobId job : expiring) {
      if (is(job, State::waits)) expire(job);
    }
    if (next_poll && simulation_.pending() == 1) {  // nothing else is to come: nothing will change
      simulation_.cancel(*next_poll);
      polling_ = false;
    }
  }

  // One that asks anew keeps its place, is looked at in its turn, and if it then still waits, the policy is
  // asked once more.
  void expire(JobId job) {
    const WaitEnd end = session_.end_wait(job, now());
    if (end == WaitEnd::waits_on) return;
    if (end == WaitEnd::over) {
      released();  // it may have stood in another's way
      return follow(job);
    }
    expiring_.push_back(job);
    request_pump();
  }

  // The policy decided about it.
  void follow(JobId job) {
    const QueuedJob& queued = session_.job(job);
    if (queued.state == State::waits) return;
    end_wait(job);
    if (queued.state == State::runs) return start(queued);
    leave(job, queued.state == State::refused ? JobOutcome::refused : JobOutcome::wait_timeout,
          queued.reason);
  }

  void start(const QueuedJob& queued) {
    const JobId job = queued.id;
    JobStanding& at = standings_[job];
    JobRecord& record = run_.jobs[job];
    at.since = now();
    if (record.starts == 0) record.first_start = now();
    ++record.starts;
    record.split = queued.split;
    record.cards = queued.cards;
    record.need = queued.need;
    if (!queued.reason.empty()) record.reason = queued.reason;
    run_.most_promised = std::max(run_.most_promised, books_.sums().promised);
    run_.most_active = std::max(run_.most_active, ++active_);
    monitor_.admitted(job, record.cards, record.need, now());
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

  void promise_changed(const QueuedJob& job, bool given) override {
    books_.promise_changed(job, given, now());
  }

  void take_memory(JobId job) {
    const JobRecord& record = run_.jobs[job];
    const Admission admission{&record.cards, record.need, record.split, rules_.enforces_promise};
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
    record.overran = record.overran || used > record.need;
    if (progress == JobProgress::out_of_memory) return run_out(job);
    if (progress == JobProgress::gave_up) return give_up(job);
    if (used != before) session_.set_reserved_for(job, used);
    if (used < before) released();
    if (progress == JobProgress::phase_done) end_phase(job);
  }

  void end_phase(JobId job) {
    JobStanding& at = standings_[job];
    const JobSpec& spec = setup_.jobs[job];
    if (++at.phase == spec.phases.size()) {
      release_memory(job);
      return leave(job, JobOutcome::completed, {});
    }
    if (!rules_.per_phase || !spec.phases[at.phase].need) return take_memory(job);
    at.ran += now() - at.since;
    release_memory(job);
    session_.wait_again(job, whole_demand(job), now());
    begin_wait(job);
    request_pump();
  }

  // The one way out of running, whatever the reason: memory back, and waiters looked at. The promise comes
  // back as the session is told why.
  void release_memory(JobId job, bool ran_out = false) {
    keep_tuning(job);
    execution_->leave(job);
    monitor_.left(job, ran_out, now());
    ++standings_[job].epoch;
    --active_;
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
    release_memory(job);
    leave(job, JobOutcome::gave_up, execution_->shortage());
  }

  void run_out(JobId job) {
    JobStanding& at = standings_[job];
    JobRecord& record = run_.jobs[job];
    ++record.ooms;
    const SimTime ran = at.ran + (now() - at.since);
    record.wasted += ran * static_cast<std::int64_t>(record.cards.size());
    release_memory(job, /*ran_out=*/true);
    at.phase = 0;
    at.ran = SimTime{0};
    session_.out_of_memory(job, now());
    const QueuedJob& queued = session_.job(job);
    record.reason = queued.reason + (queued.reason.empty() ? "" : " ") + execution_->shortage();
    if (queued.state != State::waits) return leave(job, JobOutcome::out_of_memory, {});
    begin_wait(job);
    request_pump();
  }

  // The driver takes a dead process's memory back at once; its promise stands until its lease runs out.
  void crash(JobId job) {
    release_memory(job);
    session_.set_reserved_for(job, 0);
    end_record(job, JobOutcome::crashed, "its owner died");
    if (rules_.lease > SimTime{0}) simulation_.schedule(rules_.lease, {Kind::lease, job, 0});
  }
  void expire_lease(JobId job) {
    session_.leave(job);
    released();
    request_pump();
  }

  void end_by_limit(JobId job) {
    if (run_.jobs[job].outcome != JobOutcome::pending) return;
    std::string reason = "did not end within " +
                         std::to_string(rules_.job_timeout / std::chrono::seconds{1}) + " s of its arrival";
    if (is(job, State::waits)) {
      const std::string why = session_.why_waiting(job);
      if (!why.empty()) reason += ": " + why;
      end_wait(job);
      released();
    } else {
      release_memory(job);
    }
    leave(job, JobOutcome::job_timeout, reason + ".");
  }

  void leave(JobId job, JobOutcome outcome, std::string reason) {
    session_.leave(job);
    end_record(job, outcome, std::move(reason));
  }
  void end_record(JobId job, JobOutcome outcome, std::string reason) {
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
    if (!comes) released();
  }

  const JobQueueSetup& setup_;
  QueueRules rules_;
  JobClock simulation_;
  AdmitterSession session_;
  ClusterBooks books_;
  std::unique_ptr<JobExecution> execution_;
  QueueMonitor monitor_;
  std::vector<JobStanding> standings_;
  std::vector<std::uint32_t> order_;  ///< jobs by arrival
  std::size_t next_ = 0;              ///< of `order_`
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
