#include "sim/runs/job_execution.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/runs/job_process.hpp"

namespace vramlab {
namespace {

class DeclaredExecution final : public JobExecution {
 public:
  DeclaredExecution(const std::vector<JobSpec>& jobs, ClusterBooks& books, JobClock& clock)
      : jobs_(jobs), books_(books), clock_(clock), held_(jobs.size()) {}

  JobProgress enter(std::uint32_t job, const Admission& admission, std::size_t phase) override {
    const JobPhase& what = jobs_[job].phases[phase];
    const Bytes use = flat_use(what, admission);
    give(job, admission);
    if (!books_.take(*admission.cards, admission.need, use, clock_.now())) return JobProgress::out_of_memory;
    held_[job].bytes = use;
    held_[job].timer = clock_.schedule(what.duration, {JobEvent::Kind::work, job, 0});
    return JobProgress::goes_on;
  }

  JobProgress resume(std::uint32_t /*job*/, const Admission& /*admission*/) override {
    return JobProgress::phase_done;
  }

  void leave(std::uint32_t job, const Admission& admission) override {
    if (held_[job].timer) clock_.cancel(*held_[job].timer);
    give(job, admission);
  }

  [[nodiscard]] Bytes used(std::uint32_t job) const override { return held_[job].bytes; }

 private:
  struct Held {
    Bytes bytes = 0;
    std::optional<EventId> timer;
  };

  void give(std::uint32_t job, const Admission& admission) {
    const Bytes bytes = std::exchange(held_[job].bytes, 0);
    if (bytes > 0) books_.give(*admission.cards, admission.need, bytes, clock_.now());
  }

  const std::vector<JobSpec>& jobs_;
  ClusterBooks& books_;
  JobClock& clock_;
  std::vector<Held> held_;
};

}  // namespace

Bytes flat_use(const JobPhase& phase, const Admission& admission) {
  if (!phase.fixed_use) return admission.need;
  return *phase.fixed_use + phase.use_per_sample * static_cast<Bytes>(admission.split.batch);
}

std::unique_ptr<JobExecution> declared_execution(const std::vector<JobSpec>& jobs, ClusterBooks& books,
                                                 JobClock& clock) {
  return std::make_unique<DeclaredExecution>(jobs, books, clock);
}

namespace {

// time · numerator / denominator, rounded down, without overflow where the result has none.
SimTime scaled(SimTime time, std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t whole = time.count() / denominator;
  return SimTime{whole * numerator + time.count() % denominator * numerator / denominator};
}

/// A card with the jobs that compute on it.
struct Card {
  Card(Bytes total, Bytes context_bytes) : memory(total, 0), context(context_bytes) {}
  SimulatedCard memory;
  Bytes context;
  std::int64_t busy = 0;  ///< sum of the shares of jobs and strangers, in thousandths
  std::vector<std::uint32_t> jobs;
};

/// Where an admitted job stands.
struct Work {
  const std::vector<CardId>* cards = nullptr;
  std::vector<std::unique_ptr<JobProcess>> processes;  ///< one a card
  std::vector<Holding> held;                           ///< by process, as the books have it
  std::map<Point, std::size_t> visits;                 ///< steps performed, by point
  std::size_t phase = 0;
  std::int64_t steps_left = 0;  ///< of the phase, behind those in progress
  bool computes = false;        ///< its share counts on its cards
  SimTime left{0};              ///< of the steps in progress, had it the card alone
  SimTime since{0};             ///< when `left` was so
  std::int64_t stretch = 1000;
  std::optional<EventId> timer;
};

class StepExecution final : public JobExecution {
 public:
  StepExecution(const std::vector<JobSpec>& jobs, const StepFidelity& fidelity, ClusterBooks& books,
                JobClock& clock)
      : jobs_(jobs), fidelity_(fidelity), books_(books), clock_(clock), works_(jobs.size()) {
    cards_.reserve(books.cards().size());  // processes refer to them
    for (CardId card = 0; card < books.cards().size(); ++card) {
      const CardNode& node = books.index().nodes()[books.index().node_of(card)];
      cards_.emplace_back(books.cards()[card].total, fidelity.contexts.at(node.pool));
    }
  }

  JobProgress enter(std::uint32_t job, const Admission& admission, std::size_t phase) override {
    Work& work = works_[job];
    work.phase = phase;
    work.cards = admission.cards;
    const bool has_model = jobs_[job].model.has_value();
    work.steps_left = has_model ? jobs_[job].phases[phase].steps * admission.split.accumulation : 1;
    return perform(job, admission);
  }

  JobProgress resume(std::uint32_t job, const Admission& admission) override {
    works_[job].timer.reset();
    return works_[job].steps_left > 0 ? perform(job, admission) : JobProgress::phase_done;
  }

  void leave(std::uint32_t job, const Admission& admission) override {
    Work& work = works_[job];
    if (work.timer) clock_.cancel(*work.timer);
    work.timer.reset();
    set_computing(job, admission, false);
    work.processes.clear();
    for (std::size_t i = 0; i < work.held.size(); ++i) account(job, admission, i, {});
    work = {};
  }

  [[nodiscard]] Bytes used(std::uint32_t job) const override {
    Bytes most = 0;
    for (const Holding& held : works_[job].held) most = std::max(most, held.reserved);
    return most;
  }

  void strangers_changed(CardId card, std::int64_t busy_change) override {
    cards_[card].memory.set_others(books_.cards()[card].foreign);
    cards_[card].busy += busy_change;
    if (busy_change != 0) retime(card);
  }

 private:
  // One step on every card, or at once all that are left where they repeat.
  JobProgress perform(std::uint32_t job, const Admission& admission) {
    Work& work = works_[job];
    SimTime driver_time{0};
    if (!begin(job, admission, driver_time)) return JobProgress::out_of_memory;
    JobProgram flat;
    const JobProgram& program = next_program(job, admission, flat);
    bool settled = true;
    for (std::size_t i = 0; i < work.processes.size(); ++i) {
      const JobProcess::Step step = work.processes[i]->run(program.program, program.key, program.shape);
      account(job, admission, i, work.processes[i]->holding());
      if (!step.ok) return JobProgress::out_of_memory;
      settled = settled && step.settled;
      driver_time = std::max(driver_time, step.driver_time);
    }
    const std::int64_t steps = settled ? work.steps_left : 1;
    work.steps_left -= steps;
    work.left = program.program.duration * steps + driver_time;
    work.since = clock_.now();
    const bool elsewhere = !jobs_[job].model && flat_use(jobs_[job].phases[work.phase], admission) == 0;
    set_computing(job, admission, !elsewhere);
    schedule(job);
    return JobProgress::goes_on;
  }

  // Opens contexts and builds the model where the job has not begun. A job without a model that holds
  // nothing in this phase has no context either: it works elsewhere.
  bool begin(std::uint32_t job, const Admission& admission, SimTime& driver_time) {
    Work& work = works_[job];
    const auto& model = jobs_[job].model;
    if (!work.processes.empty()) return true;
    if (!model && flat_use(jobs_[job].phases[work.phase], admission) == 0) return true;
    for (std::size_t i = 0; i < admission.cards->size(); ++i) {
      Card& card = cards_[(*admission.cards)[i]];
      work.held.emplace_back();
      work.processes.push_back(std::make_unique<JobProcess>(card.memory, card.context, fidelity_.allocator));
      JobProcess& process = *work.processes.back();
      bool ok = process.open();
      if (ok && model) {
        const JobProgram& built = programs_.build(*model->workload);
        const JobProcess::Step step = process.run(built.program, built.key);
        ok = step.ok;
        driver_time = std::max(driver_time, step.driver_time);
      }
      account(job, admission, i, process.holding());
      if (!ok) return false;
    }
    return true;
  }

  const JobProgram& next_program(std::uint32_t job, const Admission& admission, JobProgram& flat) {
    const JobPhase& phase = jobs_[job].phases[works_[job].phase];
    if (const auto& model = jobs_[job].model) {
      Point point = phase.point;
      point[model->batch] = admission.split.batch;
      point = model->workload->parameters().clamp(point);
      return programs_.step(*model->workload, point, works_[job].visits[point]++);
    }
    const Card& card = cards_[admission.cards->front()];
    const Bytes use = flat_use(phase, admission);
    flat = programs_.flat(use > card.context ? use - card.context : 0, card.memory.total(), phase.duration);
    return flat;
  }

  // What the process number `i` of the job holds now; strangers get what they still want of the rest.
  void account(std::uint32_t job, const Admission& admission, std::size_t i, const Holding& held) {
    const CardId card = (*admission.cards)[i];
    books_.hold(card, admission.need, works_[job].held[i], held, clock_.now());
    works_[job].held[i] = held;
    cards_[card].memory.set_others(books_.cards()[card].foreign);
  }

  void set_computing(std::uint32_t job, const Admission& admission, bool computes) {
    if (std::exchange(works_[job].computes, computes) == computes) return;
    for (const CardId card : *admission.cards) {
      if (computes) {
        cards_[card].jobs.push_back(job);
      } else {
        std::erase(cards_[card].jobs, job);
      }
      cards_[card].busy += computes ? jobs_[job].busy_milli : -jobs_[job].busy_milli;
      retime(card);
    }
  }

  // Steps in progress go on faster or slower from now on.
  void retime(CardId card) {
    for (const std::uint32_t job : cards_[card].jobs) {
      Work& work = works_[job];
      if (!work.timer) continue;
      clock_.cancel(*work.timer);
      work.left -= scaled(clock_.now() - work.since, 1000, work.stretch);
      work.since = clock_.now();
      schedule(job);
    }
  }

  void schedule(std::uint32_t job) {
    Work& work = works_[job];
    work.stretch = 1000;
    for (const CardId card : *work.cards) {
      if (work.computes) work.stretch = std::max(work.stretch, stretch_milli(cards_[card].busy));
    }
    const SimTime span = scaled(work.left, work.stretch, 1000);
    const bool whole = scaled(span, 1000, work.stretch) >= work.left;
    work.timer = clock_.schedule(whole ? span : span + SimTime{1}, {JobEvent::Kind::work, job, 0});
  }

  const std::vector<JobSpec>& jobs_;
  const StepFidelity& fidelity_;
  ClusterBooks& books_;
  JobClock& clock_;
  std::vector<Card> cards_;
  std::vector<Work> works_;
  JobPrograms programs_;
};

}  // namespace

std::unique_ptr<JobExecution> step_execution(const std::vector<JobSpec>& jobs, const StepFidelity& fidelity,
                                             ClusterBooks& books, JobClock& clock) {
  return std::make_unique<StepExecution>(jobs, fidelity, books, clock);
}

}  // namespace vramlab
