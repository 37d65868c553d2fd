#include "sim/runs/job_steering.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "policies/contract/batch_sessions.hpp"
#include "policies/contract/session.hpp"
#include "sim/runs/stepped_run.hpp"

namespace vramlab {
namespace {

/// The processes of a job as `obey` wants them.
struct JobCards {
  const JobProcesses& processes;

  [[nodiscard]] SimTime empty_cache() const {
    SimTime longest{0};
    for (const auto& process : processes) longest = std::max(longest, process->empty_cache());
    return longest;
  }
  void reset_peak() const {
    for (const auto& process : processes) process->reset_peak();
  }
  [[nodiscard]] std::vector<MemoryView> views() const {
    std::vector<MemoryView> views;
    for (const auto& process : processes) views.push_back(process->view());
    return views;
  }
  [[nodiscard]] Observation read(std::int64_t iteration, SimTime since) const {
    return reading_of(views(), iteration, since, CardsRule::fullest);
  }
};

class TunedJob final : public SteeredJob {
 public:
  TunedJob(const JobTuner& tuner, const WorkloadModel& model, StepPrograms& programs, Point start,
           std::int64_t steps, SimTime now)
      : session_(tuner.make(), tuner.bounds, tuner.bounds.clamp(std::move(start))),
        model_(model),
        programs_(programs),
        steps_(steps),
        began_(now) {
    note(TunedMoment::Kind::start, now, session_.point());
  }

  const StepPrograms::Program* begin_step(const JobProcesses& /*processes*/, SimTime /*now*/,
                                          SimTime& /*delay*/) override {
    if (!repeats_ && iteration_ == steps_) return nullptr;
    if (!repeats_) ++iteration_;
    return &programs_.next(session_.point(), visits_[session_.point()]++);
  }

  SimTime end_step(const JobOnCard::Step& step, const JobProcesses& processes, SimTime now) override {
    const JobCards cards{processes};
    const StepResult result = step.ok ? StepResult::ok : StepResult::oom;
    const Point ran = session_.point();
    Observation reading = cards.read(iteration_, now - began_);
    reading.new_process = std::exchange(is_new_, false);
    if (step.ok) {
      record_.samples += model_.samples(ran);
      record_.pixels += model_.pixels(ran);
    } else {
      ++record_.failed_steps;
      note(TunedMoment::Kind::failure, now, ran);
    }
    const StepDecision decision =
        session_.after_step(result, reading, ran, step.oom ? step.oom->requested : 0);
    if (decision.moved) {
      ++record_.changes;
      note(TunedMoment::Kind::change, now, session_.point(), decision.reason);
    }
    const SimTime delay = obey(decision, cards);
    ended_ = failures_.note(result, decision.moved, ran, session_.space());
    if (decision.end_run && ended_.empty()) ended_ = end_reason(decision.reason);
    repeats_ = decision.retry && !step.ok;
    return delay;
  }

 private:
  void note(TunedMoment::Kind kind, SimTime now, const Point& point, const std::string& reason = {}) {
    record_.course.push_back({kind, now, iteration_, point, reason});
  }

  TunerSession session_;
  const WorkloadModel& model_;
  StepPrograms& programs_;
  std::map<Point, std::size_t> visits_;  ///< steps performed, by point
  std::int64_t steps_;
  SimTime began_;
  std::int64_t iteration_ = 0;
  bool is_new_ = true;    ///< the process, until its first reading
  bool repeats_ = false;  ///< the step to begin is the failed one again
  FailuresInARow failures_;
};

class ComposedJob final : public SteeredJob {
 public:
  ComposedJob(const JobComposer& spec, SimTime now)
      : spec_(spec), composer_(spec.make()), session_(*composer_, spec.data), began_(now) {
    session_.set_limits(spec.limits);
    record_.course.push_back({.kind = TunedMoment::Kind::start, .time = now, .point = {0}});
  }

  const StepPrograms::Program* begin_step(const JobProcesses& processes, SimTime now,
                                          SimTime& delay) override {
    try {
      return next_batch({processes}, now, delay);
    } catch (const PolicyFault& fault) {
      ended_ = fault.what();
    }
    return nullptr;
  }

  SimTime end_step(const JobOnCard::Step& step, const JobProcesses& processes, SimTime now) override {
    const MemoryView after = processes.front()->view();
    const Bytes wanted = step.oom ? step.oom->allocated + step.oom->requested : 0;
    const BatchResult result{
        .result = step.ok ? StepResult::ok : StepResult::oom,
        .rise = std::max(after.peak_allocated, wanted) - before_.allocated,
        .typical = batches_ > 1 && !checkpointing_,
        .usage = static_cast<double>(after.peak_allocated) / static_cast<double>(after.total)};
    if (step.ok) {
      record_.samples += std::ssize(batch_);
      record_.pixels += std::ssize(batch_);
    } else {
      ++record_.failed_steps;
      record_.course.push_back({TunedMoment::Kind::failure, now, batches_, {std::ssize(batch_)}, {}});
    }
    try {
      session_.told(batch_, result);
    } catch (const PolicyFault& fault) {
      ended_ = fault.what();
    }
    if (session_.failed_in_a_row() == kMostFailedBatchesInARow) {
      ended_ = std::to_string(kMostFailedBatchesInARow) + " batches in a row ran out of memory";
    }
    return SimTime{0};
  }

 private:
  // As an epoch of its own does (run_epochs): a clean-up is obeyed at once and asked about again.
  const StepPrograms::Program* next_batch(const JobCards& cards, SimTime now, SimTime& delay) {
    for (;;) {
      if (!session_.cleaned_up() && !goes_on()) return nullptr;
      Observation reading = cards.read(batches_, now - began_);
      reading.new_process = std::exchange(is_new_, false);
      ComposerAnswer answer = session_.next(reading);
      if (answer.action == ComposerAnswer::Action::clean_up) {
        delay += cards.empty_cache();
        continue;
      }
      if (answer.action == ComposerAnswer::Action::give_up) {
        ended_ = end_reason(answer.reason);
        return nullptr;
      }
      return perform(std::move(answer), cards, now);
    }
  }

  // Ends an epoch that is through and begins the next one; false after the last.
  bool goes_on() {
    if (in_epoch_ && session_.left() == 0) {
      session_.end_epoch();
      ++epoch_;
      in_epoch_ = false;
    }
    if (epoch_ == spec_.epochs) return false;
    if (!std::exchange(in_epoch_, true)) session_.begin_epoch(epoch_);
    return true;
  }

  const StepPrograms::Program* perform(ComposerAnswer answer, const JobCards& cards, SimTime now) {
    batch_ = std::move(answer.batch);
    checkpointing_ = answer.checkpointing && spec_.checkpointed != nullptr;
    ++batches_;
    note_size(now);
    std::vector<Sample> samples;
    for (const SampleId id : batch_) samples.push_back(spec_.data.samples[id]);
    StepProgram step = (checkpointing_ ? spec_.checkpointed : spec_.model)->step(samples);
    program_.shape = static_cast<std::uint64_t>(session_.shape().images);
    program_.program = session_.accumulates() ? accumulating(std::move(step)) : std::move(step);
    before_ = cards.processes.front()->view();
    cards.reset_peak();
    return &program_;
  }

  // The size of its batches is what a composer moves.
  void note_size(SimTime now) {
    const std::int64_t size = std::ssize(batch_);
    if (record_.course.back().point.front() == size) return;
    record_.course.push_back({TunedMoment::Kind::change, now, batches_ - 1, {size}, {}});
  }

  const JobComposer& spec_;
  std::unique_ptr<Composer> composer_;
  ComposerSession session_;
  SimTime began_;
  std::vector<SampleId> batch_;  ///< that runs or ran last
  StepPrograms::Program program_;
  MemoryView before_;  ///< it
  bool checkpointing_ = false;
  std::int64_t batches_ = 0;
  std::int64_t epoch_ = 0;
  bool in_epoch_ = false;
  bool is_new_ = true;
};

}  // namespace

std::unique_ptr<SteeredJob> tuned_job(const JobTuner& tuner, const WorkloadModel& model,
                                      StepPrograms& programs, Point start, std::int64_t steps, SimTime now) {
  return std::make_unique<TunedJob>(tuner, model, programs, std::move(start), steps, now);
}

std::unique_ptr<SteeredJob> composed_job(const JobComposer& composer, SimTime now) {
  return std::make_unique<ComposedJob>(composer, now);
}

}  // namespace vramlab
