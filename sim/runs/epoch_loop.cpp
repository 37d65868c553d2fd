#include "sim/runs/epoch_loop.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "models/sample.hpp"

namespace vramlab {

std::vector<double> DeclaredSeries::at(std::int64_t number) const {
  std::vector<double> values;
  for (const auto& series : by_task) {
    values.push_back(series[std::min(series.size() - 1, static_cast<std::size_t>(number))]);
  }
  return values;
}

namespace {

// No step comes twice: there is nothing to remember.
std::vector<ProcessSetup> processes_of(const EpochSetup& setup) {
  std::vector<ProcessSetup> cards{setup.process};
  cards.insert(cards.end(), setup.more_cards.begin(), setup.more_cards.end());
  for (ProcessSetup& card : cards) card.use_step_cache = false;
  return cards;
}

bool holds_alone(const EpochSetup& setup, const BatchModel& model, const Sample& sample) {
  CardRunner cards(model.build(), processes_of(setup));
  for (int step = 0; step < 2; ++step) {
    const StepOutcome outcome =
        cards.run_program(model.step({&sample, 1}), static_cast<std::uint64_t>(sample.images), {});
    if (outcome.result != StepResult::ok) return false;
  }
  return true;
}

bool holds_alone(const EpochSetup& setup, const Sample& sample) {
  return holds_alone(setup, *setup.model, sample) ||
         (setup.checkpointed != nullptr && holds_alone(setup, *setup.checkpointed, sample));
}

class EpochLoop final : private SteppedRun {
 public:
  EpochLoop(const EpochSetup& setup, Composer& composer)
      : SteppedRun(setup.faults, setup.others, setup.start ? setup.start->time : SimTime{0}),
        setup_(setup),
        composer_(composer),
        rule_(composer.accumulation()),
        session_(composer, {.samples = setup.samples,
                            .target_batch = setup.target_batch,
                            .seed = setup.seed,
                            .shuffle = setup.shuffle,
                            .packs = setup.packs}),
        shares_(setup.loss.weights),
        cards_(setup.model->build(), processes_of(setup), setup.make_performer),
        tuner_readings_(setup.faults),
        began_(now()),
        epoch_began_(now()) {
    if (setup.start) go_on();
    start_processes(cards_.processes());
    for (const EpochPhase& phase : setup.phases) {
      if (phase.model == nullptr || phase_cards_.contains(phase.model)) continue;
      const auto added = phase_cards_.try_emplace(phase.model, phase.model->build(), processes_of(setup),
                                                  setup.make_performer);
      add_processes(added.first->second.processes());
    }
    restart_readings(reading());
  }

  EpochRun run() {
    try {
      restore_composer();
      if (setup_.tuning) start_tuner(*setup_.tuning);
      run_events();
    } catch (const PolicyFault& fault) {
      run_.ended_early = fault.what();
    }
    run_.totals.duration = now() - began_;
    run_.complete = run_.ended_early.empty() && epoch_ >= setup_.epochs;
    run_.gradient_shares = shares_.shares();
    run_.statistics = composer_.statistics();
    if (tuner_) {
      run_.adjustments = tuner_->adjustments();
      run_.final_point = tuner_->point();
    }
    run_.alloc_retries = reading().memory.alloc_retries;
    run_.phases = phase_counts_;
    run_.faults = fault_counts_;
    save_state();
    return std::move(run_);
  }

 private:
  // One that cannot go on ends its own run.
  void restore_composer() {
    if (!setup_.start) return;
    try {
      composer_.restore(setup_.start->composer);
    } catch (const InputError& error) {
      throw PolicyFault("the policy could not go on after the restart: " + error.problems().front().what);
    }
  }

  void start_tuner(const BatchTuning& tuning) {
    tuner_.emplace(tuning.make(), tuning.space, tuning.start);
    if (!at_.tuner.empty()) {
      try {
        tuner_->load(at_.tuner);
      } catch (const InputError& error) {
        throw PolicyFault("the tuner could not go on after the restart: " + error.problems().front().what);
      }
    }
    limit_batches();
    reset_peaks();
    tuner_readings_.restart(tuner_reading());
  }

  void limit_batches() {
    const std::int64_t value = tuner_->point().front();
    limits_ = {};
    if (setup_.tuning->moves == BatchTuning::Moves::budget) {
      limits_.budget = static_cast<Bytes>(value) * 1_MiB;
    } else {
      limits_.most_samples = value;
    }
    session_.set_limits(limits_);
  }

  void go_on() {
    at_ = *setup_.start;
    session_.restore_books(at_);
    in_epoch_ = session_.left() > 0;
    epoch_ = at_.position.epoch + (in_epoch_ ? 0 : 1);
    shares_.restore(at_.gradients);
    if (!in_epoch_) at_.totals = {};
    epoch_began_ = now() - at_.totals.duration;
  }

  // A run whose state cannot be saved cannot go on. One that is complete need not.
  void save_state() {
    try {
      static_cast<ComposerState&>(at_) = session_.save();
      if (tuner_) at_.tuner = tuner_->save();
    } catch (const PolicyFault& fault) {
      if (!run_.complete && run_.ended_early.empty()) run_.ended_early = fault.what();
      return;
    }
    at_.gradients = shares_.save();
    at_.time = now();
    at_.totals.duration = now() - epoch_began_;
    run_.state = std::move(at_);
  }

  void begin_step() override {
    if (!session_.cleaned_up()) {
      if (in_epoch_ && session_.left() == 0) end_epoch();
      if (is_over()) return stop();
      if (!std::exchange(in_epoch_, true)) session_.begin_epoch(epoch_);
    }
    // After a clean-up the composer looks at once, whatever comes late otherwise.
    const ComposerAnswer answer = session_.next(session_.cleaned_up() ? reading() : deliver(reading()));
    if (answer.action == ComposerAnswer::Action::clean_up) return begin_after(cards_.empty_cache());
    if (answer.action == ComposerAnswer::Action::give_up) {
      run_.ended_early = end_reason(answer.reason);
      return stop();
    }
    perform(answer);
    end_after(record_.duration);
  }

  void end_step() override {
    declare();
    tell();
    SimTime taken{0};
    if (tuner_ && run_.ended_early.empty()) {
      taken = obey(tuner_->after_step(record_.result, tuner_readings_.deliver(tuner_reading()), {}, asked_));
    }
    begin_after(run_.ended_early.empty() ? taken + run_phases() : taken);
  }

  // The composer has its own rule for a failed batch: nothing is repeated. Returns the time that an emptied
  // cache took.
  SimTime obey(const StepDecision& decision) {
    const SimTime taken = decision.empty_cache ? cards_.empty_cache() : SimTime{0};
    if (decision.reset_peak) reset_peaks();
    if (decision.moved) limit_batches();
    if (decision.end_run) run_.ended_early = end_reason(decision.reason);
    return taken;
  }

  // Also sets why, where the run ends before its last epoch is over.
  bool is_over() {
    if (!run_.ended_early.empty() || epoch_ >= setup_.epochs) return true;
    if (setup_.max_steps > 0 && at_.batches >= setup_.max_steps) {
      run_.ended_early = "max_steps: " + std::to_string(at_.batches) + " batches were run";
      return true;
    }
    return setup_.stop_after > 0 && ran_ >= setup_.stop_after;
  }

  // What can be read now.
  [[nodiscard]] Observation reading() const { return cards_.read(at_.batches, now(), CardsRule::fullest); }

  // For the tuner, whose peaks last: the device's are reset before every batch.
  [[nodiscard]] std::vector<MemoryView> tuner_views() const {
    std::vector<MemoryView> cards = cards_.views();
    for (std::size_t i = 0; i < cards.size(); ++i) {
      cards[i].peak_allocated = std::max(cards[i].peak_allocated, peaks_[i].peak_allocated);
      cards[i].peak_reserved = std::max(cards[i].peak_reserved, peaks_[i].peak_reserved);
    }
    return cards;
  }

  [[nodiscard]] Observation tuner_reading() const {
    std::vector<MemoryView> cards = tuner_views();
    Observation reading{.iteration = at_.batches,
                        .time = now(),
                        .memory = view_of_cards(cards, CardsRule::fullest),
                        .reading = at_.batches};
    if (cards.size() > 1) reading.cards = std::move(cards);
    return reading;
  }

  void reset_peaks() {
    cards_.reset_peak();
    peaks_ = cards_.views();
  }

  void perform(const ComposerAnswer& answer) {
    std::vector<Sample> samples;
    batch_ = answer.batch;
    record_ = {};
    record_.number = ++at_.batches;
    record_.epoch = epoch_;
    record_.start = now();
    record_.samples = batch_;
    record_.shape = session_.shape();
    for (const SampleId id : batch_) samples.push_back(setup_.samples[id]);
    record_.padded_positions = setup_.model->positions(samples);
    record_.predicted = answer.predicted;
    record_.oversize = answer.oversize;
    record_.checkpointing = answer.checkpointing && setup_.checkpointed != nullptr;
    ++ran_;
    execute(samples);
  }

  void execute(const std::vector<Sample>& samples) {
    const std::vector<MemoryView> before = cards_.views();
    if (tuner_) peaks_ = tuner_views();
    cards_.reset_peak();
    const BatchModel& model = record_.checkpointing ? *setup_.checkpointed : *setup_.model;
    const BatchShape& shape = record_.shape;
    const bool new_shape = shapes_.emplace(shape.samples, shape.longest, shape.images).second;
    const StepOutcome step = perform_step(at_.batches, new_shape, [&](const StepAdditions& additions) {
      return cards_.run_program(program_of(model, samples), static_cast<std::uint64_t>(shape.images),
                                additions);
    });
    record_.result = step.result;
    record_.allocated_before = before[cards_.fullest()].allocated;
    record_.peak_allocated = step.peak_allocated;
    record_.peak_reserved = step.peak_reserved;
    record_.total = before[cards_.fullest()].total;
    record_.duration = step.duration;
    record_.limits = limits_;
    asked_ = step.oom ? step.oom->requested : 0;
    if (step.oom) record_.wanted = std::max(step.peak_allocated, step.oom->allocated + step.oom->requested);
  }

  [[nodiscard]] StepProgram program_of(const BatchModel& model, std::span<const Sample> samples) const {
    StepProgram program = model.step(samples);
    return session_.accumulates() ? accumulating(std::move(program)) : program;
  }

  SimTime run_phases() {
    return run_due_phases(at_.batches, setup_.phases, [&](const EpochPhase& phase) {
      const bool concerns_tuner = tuner_ && phase.model == nullptr;
      return concerns_tuner ? run_told_phase(phase) : run_phase(phase);
    });
  }

  // The tuner is told before and after; the time of an emptied cache counts as the phase's.
  StepOutcome run_told_phase(const EpochPhase& phase) {
    if (!run_.ended_early.empty()) return {};
    PhaseReport report{.name = phase.name, .ran = tuner_->point(), .begins = true};
    SimTime emptying = obey(tuner_->on_phase(report, tuner_reading()));
    if (!run_.ended_early.empty()) return {.duration = emptying};
    StepOutcome outcome = run_phase(phase);
    report.begins = false;
    report.result = outcome.result;
    report.peak_allocated = outcome.peak_allocated;
    if (outcome.oom) report.asked = outcome.oom->requested;
    emptying += obey(tuner_->on_phase(report, tuner_reading()));
    tuner_readings_.note_phase();
    outcome.duration += emptying;
    return outcome;
  }

  StepOutcome run_phase(const EpochPhase& phase) {
    const auto samples = std::span(setup_.samples).first(static_cast<std::size_t>(phase.samples));
    std::int64_t images = 0;
    for (const Sample& sample : samples) images += sample.images;
    CardRunner& cards = phase.model != nullptr ? phase_cards_.at(phase.model) : cards_;
    const StepProgram program =
        phase.model != nullptr ? phase.model->step(samples) : program_of(*setup_.model, samples);
    const StepOutcome outcome = cards.run_program(program, static_cast<std::uint64_t>(images), {});
    const Bytes total = cards.card(cards.fullest()).view().total;
    for (EpochTotals* totals : {&run_.totals, &at_.totals}) {
      totals->note_peak(outcome.peak_allocated, outcome.peak_reserved, total);
    }
    return outcome;
  }

  void declare() {
    record_.task_weights = shares_.weights();
    if (record_.result != StepResult::ok) return;  // it came to no loss and no gradient
    losses_ = setup_.losses.at(at_.batches - 1);
    norms_ = setup_.gradient_norms.at(at_.batches - 1);
    if (setup_.loss.balance && !norms_.empty()) {
      shares_.set_weights(balanced_weights(norms_, setup_.loss.alpha));
    }
    record_.task_losses = losses_;
    record_.gradient_norms = norms_;
    record_.task_weights = shares_.weights();
  }

  void tell() {
    const bool ran_out = record_.result == StepResult::oom;
    const BatchConsequence next = session_.told(
        batch_, {.result = record_.result,
                 .rise = (ran_out ? record_.wanted : record_.peak_allocated) - record_.allocated_before,
                 .typical = ran_ > 1 && !record_.checkpointing,
                 .usage = static_cast<double>(record_.peak_allocated) / static_cast<double>(record_.total)});
    if (record_.result == StepResult::ok) accumulate(record_, next);
    run_.totals.skipped += next.skipped;
    at_.totals.skipped += next.skipped;
    run_.totals.add(record_);
    at_.totals.add(record_);
    if (setup_.listener != nullptr) setup_.listener->batch_ends(record_);
    if (session_.failed_in_a_row() == kMostFailedBatchesInARow) {
      run_.ended_early = std::to_string(kMostFailedBatchesInARow) + " batches in a row ran out of memory";
    }
  }

  void accumulate(BatchRecord& record, const BatchConsequence& next) {
    shares_.add(record.shape);
    record.steps = next.steps;
    if (!record.steps) return;
    record.effective = next.effective;
    step(next.effective, /*last=*/false);
    if (setup_.loss.scale_learning_rate) {
      record.learning_rate_scale = learning_rate_scale(target(), static_cast<double>(next.effective));
    }
  }

  [[nodiscard]] double target() const { return static_cast<double>(setup_.target_batch); }

  void step(std::int64_t effective, bool last) {
    const double scale =
        setup_.loss.scale_gradient ? gradient_scale(target(), static_cast<double>(effective)) : 1;
    shares_.step(rule_.kind == AccumulationRule::Kind::exact, scale);
    ++at_.steps;
    run_.totals.add_step(effective, last);
    at_.totals.add_step(effective, last);
  }

  void end_epoch() {
    const std::int64_t effective = session_.end_epoch();
    if (effective > 0) step(effective, /*last=*/true);
    at_.totals.duration = now() - epoch_began_;
    if (setup_.listener != nullptr) setup_.listener->epoch_ends(epoch_, at_.totals);
    at_.totals = {};
    epoch_began_ = now();
    ++epoch_;
    in_epoch_ = false;
  }

  const EpochSetup& setup_;
  Composer& composer_;
  AccumulationRule rule_;
  ComposerSession session_;
  GradientShares shares_;
  CardRunner cards_;
  std::map<const BatchModel*, CardRunner> phase_cards_;  ///< of phases with a model of their own
  std::optional<TunerSession> tuner_;
  PolicyReadings tuner_readings_;
  std::vector<MemoryView> peaks_;  ///< by card, since the tuner last reset them
  BatchLimits limits_;             ///< that the tuner has set
  Bytes asked_ = 0;                ///< by the request that failed the batch
  std::vector<SampleId> batch_;    ///< that runs or ran last, and what became of it
  BatchRecord record_;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> shapes_;  ///< that this process has met
  std::vector<double> losses_;  ///< declared for the batch that runs
  std::vector<double> norms_;
  std::int64_t epoch_ = 0;
  bool in_epoch_ = false;  ///< the session's samples are those of an epoch that has begun
  std::int64_t ran_ = 0;   ///< batches of this run
  SimTime began_{0};       ///< when this run began
  SimTime epoch_began_{0};
  EpochState at_;  ///< where the run stands; what the members above hold is filled in at its end
  EpochRun run_;
};

}  // namespace

std::int64_t take_out_misfits(EpochSetup& setup) {
  using Sort = std::pair<std::uint32_t, std::int32_t>;  // task and images
  const auto sort_of = [](const Sample& sample) { return Sort{sample.task, sample.images}; };
  std::map<Sort, std::map<std::int64_t, Sample>> by_length;
  for (const Sample& sample : setup.samples) by_length[sort_of(sample)].try_emplace(sample.length, sample);
  std::map<Sort, std::int64_t> too_long;  // the shortest that is
  for (const auto& [sort, lengths] : by_length) {
    std::vector<Sample> rising;
    for (const auto& [length, sample] : lengths) rising.push_back(sample);
    const auto first = std::ranges::partition_point(
        rising, [&](const Sample& sample) { return holds_alone(setup, sample); });
    if (first != rising.end()) too_long[sort] = first->length;
  }
  return static_cast<std::int64_t>(std::erase_if(setup.samples, [&](const Sample& sample) {
    const auto found = too_long.find(sort_of(sample));
    return found != too_long.end() && sample.length >= found->second;
  }));
}

EpochRun run_epochs(const EpochSetup& setup, Composer& composer) { return EpochLoop{setup, composer}.run(); }

}  // namespace vramlab
