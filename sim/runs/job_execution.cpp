#include "sim/runs/job_execution.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/runs/job_process.hpp"
#include "sim/runs/job_steering.hpp"

namespace vramlab {
namespace {

// What `phase` really uses on each card, where the job has no model.
Bytes flat_use(const JobPhase& phase, const Admission& admission) {
  if (!phase.fixed_use) return admission.need;
  return *phase.fixed_use + phase.use_per_sample * static_cast<Bytes>(admission.split.batch);
}

class DeclaredExecution final : public JobExecution {
 public:
  DeclaredExecution(const std::vector<JobSpec>& jobs, ClusterBooks& books, JobClock& clock)
      : jobs_(jobs), books_(books), clock_(clock), held_(jobs.size()) {}

  JobProgress enter(std::uint32_t job, const Admission& admission, std::size_t phase) override {
    const JobPhase& what = jobs_[job].phases_of(admission.split.variant)[phase];
    const Bytes use = flat_use(what, admission);
    give(job);
    if (admission.is_limit && use > admission.need) {
      const CardId card = admission.cards->front();
      fell_short(card, books_.cards()[card], use, 0, admission.need);
      return JobProgress::out_of_memory;
    }
    if (!books_.take(job, use, clock_.now())) {
      for (const CardId card : *admission.cards) {
        const CardView& view = books_.cards()[card];
        if (use > view.total - view.reserved - view.foreign) fell_short(card, view, use, 0);
      }
      return JobProgress::out_of_memory;
    }
    held_[job] = {use, clock_.schedule(what.duration, {JobEvent::Kind::work, job, 0})};
    return JobProgress::goes_on;
  }

  JobProgress resume(std::uint32_t /*job*/) override { return JobProgress::phase_done; }

  void leave(std::uint32_t job) override {
    if (held_[job].timer) clock_.cancel(*held_[job].timer);
    give(job);
  }

  [[nodiscard]] Bytes used(std::uint32_t job) const override { return held_[job].bytes; }

 private:
  struct Held {
    Bytes bytes = 0;
    std::optional<EventId> timer;
  };

  void give(std::uint32_t job) {
    if (std::exchange(held_[job].bytes, 0) > 0) books_.give(job, clock_.now());
  }

  const std::vector<JobSpec>& jobs_;
  ClusterBooks& books_;
  JobClock& clock_;
  std::vector<Held> held_;
};

Bytes less(Bytes from, Bytes amount) { return from > amount ? from - amount : 0; }

constexpr Bytes kChunk = 512_MiB;
constexpr Bytes kPage = 2_MiB;  // R10.1

// A step of a job without a model: blocks that sum up to `bytes`, rounded down to whole pages, in place of
// those it had. They are large and of few sizes, so that what one phase leaves in the cache serves the next.
// The first block takes what is left of whole chunks: a small block would get a segment larger than itself
// (R2.2).
StepProgram flat_program(Bytes bytes, Bytes card_total, SimTime duration) {
  const auto slots = static_cast<std::uint32_t>(card_total / kChunk + 1);
  const auto chunks = static_cast<std::uint32_t>(bytes / kChunk);
  const Bytes first = bytes / kPage * kPage - (chunks > 0 ? chunks - 1 : 0) * kChunk;
  StepProgram program{.ops = {}, .persistent_slots = slots, .slots = slots, .duration = duration};
  for (std::uint32_t slot = std::max(chunks, 1u); slot < slots; ++slot) {
    program.ops.push_back({.kind = MemoryOpKind::free, .slot = slot});
  }
  program.ops.push_back({.kind = MemoryOpKind::free, .slot = 0});
  if (first > 0) program.ops.push_back({.kind = MemoryOpKind::allocate, .slot = 0, .size = first});
  for (std::uint32_t slot = 1; slot < chunks; ++slot) {
    program.ops.push_back({.kind = MemoryOpKind::ensure, .slot = slot, .size = kChunk});
  }
  return program;
}

// time · numerator / denominator, rounded down, without overflow where the result has none.
SimTime scaled(SimTime time, std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t whole = time.count() / denominator;
  return SimTime{whole * numerator + time.count() % denominator * numerator / denominator};
}

/// A card with the jobs that compute on it.
struct Card {
  std::unique_ptr<JobCard> memory;
  Bytes total;
  Bytes context;
  std::int64_t busy = 0;  ///< sum of the shares of jobs and strangers, in thousandths
  std::vector<std::uint32_t> jobs;
};

/// Where an admitted job stands.
struct Work {
  Admission admission;
  std::vector<std::unique_ptr<JobOnCard>> processes;  ///< one a card
  std::vector<Holding> held;                          ///< by process, as the books have it
  std::map<Point, std::size_t> visits;                ///< steps performed, by point
  std::size_t phase = 0;
  std::int64_t steps_left = 0;  ///< of the phase, behind those in progress
  bool computes = false;        ///< its share counts on its cards
  SimTime left{0};              ///< of the steps in progress, had it the card alone
  SimTime since{0};             ///< when `left` was so
  std::int64_t stretch = 1000;
  std::optional<EventId> timer;
  std::unique_ptr<SteeredJob> steered;  ///< of a job with a tuner or a composer
  SimTime delay{0};                     ///< before its next step, in which the policy was obeyed
  JobOnCard::Step step;                 ///< at work; the first that failed of several processes
  std::string shortage;                 ///< how far the card was from it, if it failed
};

/// What a model allocates first, and its steps, for all jobs that run it.
struct ModelPrograms {
  explicit ModelPrograms(const WorkloadModel& model) : build(model.build()), steps(model) {}
  StepProgram build;
  StepPrograms steps;
};

class StepExecution final : public JobExecution {
 public:
  StepExecution(const std::vector<JobSpec>& jobs, const StepFidelity& fidelity, ClusterBooks& books,
                JobClock& clock)
      : jobs_(jobs), fidelity_(fidelity), books_(books), clock_(clock), works_(jobs.size()) {
    for (CardId card = 0; card < books.cards().size(); ++card) {
      const CardNode& node = books.index().nodes()[books.index().node_of(card)];
      const Bytes total = books.cards()[card].total;
      const Bytes context = fidelity.contexts.at(node.pool);
      auto memory = fidelity.make_card ? fidelity.make_card(card, total, context)
                                       : std::make_unique<PretendedCard>(total, context);
      cards_.push_back({std::move(memory), total, context, 0, {}});
    }
  }

  JobProgress enter(std::uint32_t job, const Admission& admission, std::size_t phase) override {
    Work& work = works_[job];
    work.phase = phase;
    work.admission = admission;
    work.steps_left = model_of(job) ? phase_of(job).steps * admission.split.accumulation : 1;
    work.steered = steered(job);
    return perform(job);
  }

  JobProgress resume(std::uint32_t job) override {
    works_[job].timer.reset();
    if (works_[job].steered) return end_steered_step(job);
    return works_[job].steps_left > 0 ? perform(job) : JobProgress::phase_done;
  }

  void leave(std::uint32_t job) override {
    Work& work = works_[job];
    if (work.timer) clock_.cancel(*work.timer);
    work.timer.reset();
    set_computing(job, false);
    work.processes.clear();
    for (std::size_t i = 0; i < work.held.size(); ++i) account(job, i, {});
    work = {};
  }

  [[nodiscard]] Bytes used(std::uint32_t job) const override {
    Bytes most = 0;
    for (const Holding& held : works_[job].held) most = std::max(most, held.reserved);
    return most;
  }

  [[nodiscard]] const JobTuning* tuning(std::uint32_t job) const override {
    const auto& steered = works_[job].steered;
    return steered ? &steered->record() : nullptr;
  }

  void strangers_changed(CardId card, std::int64_t busy_change) override {
    cards_[card].memory->set_others(books_.cards()[card].foreign);
    cards_[card].busy += busy_change;
    if (busy_change != 0) retime(card);
  }

 private:
  // One step on every card, or at once all that are left where they repeat.
  JobProgress perform(std::uint32_t job) {
    Work& work = works_[job];
    SimTime driver_time{0};
    if (!begin(job, driver_time)) return JobProgress::out_of_memory;
    StepPrograms::Program flat;
    const StepPrograms::Program* next = next_program(job, flat);
    if (next == nullptr) return end_attempt(job);
    const StepPrograms::Program& program = *next;
    bool settled = !work.steered;
    SimTime done{0};
    work.step = {};
    for (std::size_t i = 0; i < work.processes.size(); ++i) {
      const JobOnCard::Step step =
          work.processes[i]->run(program.program, work.steered ? 0 : program.key, program.shape);
      account(job, i, work.processes[i]->holding());
      if (!step.ok) {
        refused_on(job, i, step.refused);
        if (!work.steered) return JobProgress::out_of_memory;
        if (std::exchange(work.step, step).ok) work.shortage = shortage();
      }
      settled = settled && step.settled;
      done = std::max(done, step.done);
      driver_time = std::max(driver_time, step.driver_time);
    }
    const std::int64_t steps = settled ? work.steps_left : 1;
    work.steps_left -= steps;
    work.left = (work.processes.empty() ? program.program.duration : done) * steps + driver_time +
                std::exchange(work.delay, SimTime{0});
    work.since = clock_.now();
    set_computing(job, !works_elsewhere(job));
    schedule(job);
    return JobProgress::goes_on;
  }

  [[nodiscard]] std::unique_ptr<SteeredJob> steered(std::uint32_t job) {
    const JobSpec& spec = jobs_[job];
    if (spec.composer) return composed_job(*spec.composer, clock_.now());
    if (!spec.tuner) return nullptr;
    return tuned_job(*spec.tuner, *spec.model->workload, programs_of(job).steps, first_point(job),
                     works_[job].steps_left, clock_.now());
  }

  // The policy is asked about the step that is over.
  JobProgress end_steered_step(std::uint32_t job) {
    Work& work = works_[job];
    work.delay = work.steered->end_step(work.step, work.processes, clock_.now());
    account_all(job);
    return work.steered->ended().empty() ? perform(job) : end_attempt(job);
  }

  // A policy that cannot go on ends its attempt: as an OOM where the last step failed, which the queue may
  // answer with another one.
  JobProgress end_attempt(std::uint32_t job) {
    const Work& work = works_[job];
    const std::string& why = work.steered->ended();
    if (why.empty()) return JobProgress::phase_done;
    const std::string who = jobs_[job].tuner ? "tuner" : "composer";
    say_shortage("Its " + who + " ended the run: " + why + "." + (work.step.ok ? "" : " " + work.shortage));
    return work.step.ok ? JobProgress::gave_up : JobProgress::out_of_memory;
  }

  // What the job runs as, in the variant that was admitted.
  [[nodiscard]] const JobPhase& phase_of(std::uint32_t job) const {
    const Work& work = works_[job];
    return jobs_[job].phases_of(work.admission.split.variant)[work.phase];
  }
  [[nodiscard]] const std::optional<JobModel>& model_of(std::uint32_t job) const {
    return jobs_[job].model_of(works_[job].admission.split.variant);
  }

  // A job without a model that holds nothing in this phase.
  [[nodiscard]] bool works_elsewhere(std::uint32_t job) const {
    return !model_of(job) && !jobs_[job].composer && flat_use(phase_of(job), works_[job].admission) == 0;
  }

  // Opens contexts and builds the model where the job has not begun, and does not work elsewhere.
  bool begin(std::uint32_t job, SimTime& driver_time) {
    Work& work = works_[job];
    if (!work.processes.empty() || works_elsewhere(job)) return true;
    for (std::size_t i = 0; i < work.admission.cards->size(); ++i) {
      Card& card = cards_[(*work.admission.cards)[i]];
      work.held.emplace_back();
      AllocatorOptions options = fidelity_.allocator;
      if (work.admission.is_limit) options.limit = less(work.admission.need, card.context);
      work.processes.push_back(card.memory->start(options));
      JobOnCard& process = *work.processes.back();
      JobOnCard::Step step{.ok = process.open(), .refused = card.context};
      if (step.ok && model_of(job)) step = process.run(programs_of(job).build, 0, 0);
      if (step.ok && jobs_[job].composer) step = process.run(jobs_[job].composer->model->build(), 0, 0);
      if (work.steered) process.reset_peak();
      driver_time = std::max(driver_time, step.driver_time);
      account(job, i, process.holding());
      if (step.ok) continue;
      refused_on(job, i, step.refused);
      return false;
    }
    return true;
  }

  // The process number `i` of the job was refused `size` bytes.
  void refused_on(std::uint32_t job, std::size_t i, Bytes size) {
    const CardId card = (*works_[job].admission.cards)[i];
    const Admission& admission = works_[job].admission;
    fell_short(card, books_.cards()[card], size, works_[job].held[i].reserved,
               admission.is_limit ? std::optional{admission.need} : std::nullopt);
  }

  // The point of its phase, at the batch that it was admitted with.
  [[nodiscard]] Point first_point(std::uint32_t job) const {
    const JobModel& model = *model_of(job);
    Point point = phase_of(job).point;
    point[model.batch] = works_[job].admission.split.batch;
    return model.workload->parameters().clamp(std::move(point));
  }

  ModelPrograms& programs_of(std::uint32_t job) {
    const WorkloadModel& model = *model_of(job)->workload;
    return programs_.try_emplace(&model, model).first->second;
  }

  // Null where a steered job has no step left.
  const StepPrograms::Program* next_program(std::uint32_t job, StepPrograms::Program& flat) {
    Work& work = works_[job];
    if (work.steered) {
      const auto* next = work.steered->begin_step(work.processes, clock_.now(), work.delay);
      account_all(job);
      return next;
    }
    const JobPhase& phase = phase_of(job);
    if (model_of(job)) {
      const Point point = first_point(job);
      return &programs_of(job).steps.next(point, work.visits[point]++);
    }
    const Card& card = cards_[work.admission.cards->front()];
    const Bytes use = flat_use(phase, work.admission);
    flat.program = flat_program(less(use, card.context), card.total, phase.duration);
    return &flat;
  }

  void account_all(std::uint32_t job) {
    for (std::size_t i = 0; i < works_[job].processes.size(); ++i) {
      account(job, i, works_[job].processes[i]->holding());
    }
  }

  // What the process number `i` of the job holds now; strangers get what they still want of the rest.
  void account(std::uint32_t job, std::size_t i, const Holding& held) {
    const CardId card = (*works_[job].admission.cards)[i];
    books_.hold(job, i, held, clock_.now());
    works_[job].held[i] = held;
    cards_[card].memory->set_others(books_.cards()[card].foreign);
  }

  void set_computing(std::uint32_t job, bool computes) {
    if (std::exchange(works_[job].computes, computes) == computes) return;
    for (const CardId card : *works_[job].admission.cards) {
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
    for (const CardId card : *work.admission.cards) {
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
  std::map<const WorkloadModel*, ModelPrograms> programs_;
};

}  // namespace

void JobExecution::fell_short(CardId card, const CardView& view, Bytes size, Bytes own,
                              std::optional<Bytes> limit) {
  shortage_ = "It wanted " + format_bytes(size) + (own > 0 ? " beside its " + format_bytes(own) : "") +
              " on card " + std::to_string(card) + ", ";
  const Bytes free = view.total - view.reserved - view.foreign;
  if (limit && own + size > *limit) {
    shortage_ += "where it may take the " + format_bytes(*limit) + " it was promised.";
  } else {
    shortage_ += "which had " + format_bytes(free) + " of " + format_bytes(view.total) + " free.";
  }
}

std::unique_ptr<JobExecution> declared_execution(const std::vector<JobSpec>& jobs, ClusterBooks& books,
                                                 JobClock& clock) {
  return std::make_unique<DeclaredExecution>(jobs, books, clock);
}

std::unique_ptr<JobExecution> step_execution(const std::vector<JobSpec>& jobs, const StepFidelity& fidelity,
                                             ClusterBooks& books, JobClock& clock) {
  return std::make_unique<StepExecution>(jobs, fidelity, books, clock);
}

}  // namespace vramlab
