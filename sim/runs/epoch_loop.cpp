#include "sim/runs/epoch_loop.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "models/sample.hpp"
#include "sim/runs/step_executor.hpp"
#include "sim/runs/step_performer.hpp"

namespace vramlab {

std::vector<double> DeclaredSeries::at(std::int64_t number) const {
  std::vector<double> values;
  for (const auto& series : by_task) {
    values.push_back(series[std::min(series.size() - 1, static_cast<std::size_t>(number))]);
  }
  return values;
}

namespace {

using Action = ComposerAnswer::Action;

class EpochLoop {
 public:
  EpochLoop(const EpochSetup& setup, Composer& composer)
      : setup_(setup),
        composer_(composer),
        rule_(composer.accumulation()),
        accumulation_(rule_, setup.target_batch),
        shares_(setup.loss.weights),
        card_(setup.process.card_total, setup.process.context_bytes),
        process_(card_, setup.process.allocator),
        candidates_(setup.samples.size(), setup.seed, 0, setup.shuffle) {
    if (setup.start) go_on(*setup.start);
    require_built(process_.executor().run(setup.model->build()));
  }

  EpochRun run() {
    try {
      restore_composer();
      run_all();
    } catch (const PolicyFault& fault) {
      run_.ended_early = fault.what();
    }
    run_.totals.duration = now_ - began_;
    run_.complete = run_.ended_early.empty() && epoch_ >= setup_.epochs;
    run_.gradient_shares = shares_.shares();
    run_.statistics = composer_.statistics();
    run_.alloc_retries = static_cast<std::uint64_t>(process_.allocator().stats().num_alloc_retries);
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

  void run_all() {
    for (; epoch_ < setup_.epochs && !stopped(); ++epoch_) {
      if (!std::exchange(in_epoch_, false)) {
        candidates_ = Candidates(setup_.samples.size(), setup_.seed, epoch_, setup_.shuffle);
      }
      while (candidates_.left() > 0 && !stopped()) next_batch();
      if (stopped() && candidates_.left() > 0) break;
      end_epoch();
    }
  }

  void go_on(const EpochState& from) {
    candidates_ = Candidates(setup_.samples.size(), from.position, setup_.shuffle);
    in_epoch_ = candidates_.left() > 0;
    epoch_ = from.position.epoch + (in_epoch_ ? 0 : 1);
    number_ = from.batches;
    steps_ = from.steps;
    accumulation_.restore(from.effective, from.micro_batches, from.micro_steps);
    shares_.restore(from.gradients);
    failed_in_a_row_ = from.failed_in_a_row;
    began_ = now_ = from.time;
    epoch_totals_ = in_epoch_ ? from.totals : EpochTotals{};
    epoch_began_ = now_ - epoch_totals_.duration;
  }

  // A run whose state cannot be saved cannot go on. One that is complete need not.
  void save_state() {
    try {
      run_.state = state();
    } catch (const PolicyFault& fault) {
      if (!run_.complete && run_.ended_early.empty()) run_.ended_early = fault.what();
    }
  }

  [[nodiscard]] EpochState state() const {
    EpochTotals totals = epoch_totals_;
    totals.duration = now_ - epoch_began_;
    return {.position = candidates_.position(),
            .batches = number_,
            .steps = steps_,
            .effective = accumulation_.samples(),
            .micro_batches = accumulation_.done(),
            .micro_steps = accumulation_.micro_steps(),
            .composer = composer_.save(),
            .gradients = shares_.save(),
            .failed_in_a_row = failed_in_a_row_,
            .time = now_,
            .totals = totals};
  }

  [[nodiscard]] bool stopped() const {
    return !run_.ended_early.empty() || (setup_.stop_after > 0 && ran_ >= setup_.stop_after);
  }

  [[nodiscard]] MemoryView view() const {
    return view_of(process_.allocator().stats(),
                   setup_.process.allocator.limit.value_or(setup_.process.card_total), card_.free());
  }

  ComposerAnswer ask(ComposerEvent event) {
    const ComposerQuestion question{.event = event,
                                    .samples = setup_.samples,
                                    .candidates = candidates_,
                                    .most = accumulation_.room(),
                                    .packs = setup_.packs,
                                    .accumulates = accumulation_.done() > 0};
    return composer_.decide(question, {.iteration = number_, .time = now_, .memory = view()});
  }

  void next_batch() {
    serve_others();
    ComposerAnswer answer = ask(ComposerEvent::next);
    if (answer.action == Action::clean_up) {
      const SimTime before = process_.driver_time();
      process_.allocator().empty_cache();
      now_ += process_.driver_time() - before;
      answer = ask(ComposerEvent::cleaned_up);
      if (answer.action == Action::clean_up) throw PolicyFault("the composer asked twice for a clean-up");
    }
    if (answer.action == Action::give_up) {
      run_.ended_early = answer.reason;
      return;
    }
    // The policy is not trusted: only samples that wait, and no more than there is room for.
    if (answer.batch.empty() || static_cast<std::int64_t>(answer.batch.size()) > accumulation_.room()) {
      throw PolicyFault("the composer answered a batch of " + std::to_string(answer.batch.size()) +
                        " samples where there was room for " + std::to_string(accumulation_.room()));
    }
    take(answer.batch);
    perform(answer);
  }

  void take(const std::vector<SampleId>& batch) {
    try {
      candidates_.take(batch);
    } catch (const InternalError& error) {
      throw PolicyFault(error.what());
    }
  }

  void serve_others() {
    Bytes wanted = 0;
    for (const OtherProcess& other : setup_.others) {
      if (other.from <= now_ && now_ < other.to) wanted += other.bytes;
    }
    if (card_.others() != wanted) card_.set_others(wanted);
  }

  void perform(const ComposerAnswer& answer) {
    std::vector<Sample> samples;
    BatchRecord record{.number = ++number_, .epoch = epoch_, .start = now_, .samples = answer.batch};
    record.shape.packs = setup_.packs;
    record.shape.accumulates = accumulation_.done() > 0;
    for (const SampleId id : answer.batch) {
      samples.push_back(setup_.samples[id]);
      record.shape.add(samples.back());
    }
    record.padded_positions = collated(samples, record.shape);
    record.predicted = answer.predicted;
    record.oversize = answer.oversize;
    record.checkpointing = answer.checkpointing && setup_.checkpointed != nullptr;
    ++ran_;
    execute(samples, record);
    now_ += record.duration;
    declare(record);
    tell(answer.batch, record);
  }

  [[nodiscard]] std::int64_t collated(const std::vector<Sample>& samples, const BatchShape& shape) const {
    if (!setup_.packs) return shape.positions();
    std::vector<std::int64_t> tokens;
    for (const Sample& sample : samples) tokens.push_back(sample.tokens);
    return static_cast<std::int64_t>(pack(tokens, shape.longest).size()) * shape.longest;
  }

  // A step that fails has done the share of its work that came before the failing allocation.
  void execute(const std::vector<Sample>& samples, BatchRecord& record) {
    const BatchModel& model = record.checkpointing ? *setup_.checkpointed : *setup_.model;
    StepProgram program = model.step(samples);
    if (record.shape.accumulates) program = accumulating(std::move(program));
    CachingAllocator& allocator = process_.allocator();
    allocator.reset_peak_stats();
    const SimTime driver = process_.driver_time();
    record.allocated_before = view().allocated;
    const ExecutedStep step =
        process_.executor().run(program, static_cast<std::uint64_t>(record.shape.images));
    const MemoryView after = view();
    record.result = step.result;
    record.peak_allocated = after.peak_allocated;
    record.peak_reserved = after.peak_reserved;
    record.total = after.total;
    record.duration = program.duration;
    if (step.oom) {
      record.wanted = std::max(after.peak_allocated, step.oom->allocated + step.oom->requested);
      const double share = static_cast<double>(step.ops_done) / static_cast<double>(program.ops.size());
      record.duration =
          SimTime{static_cast<std::int64_t>(static_cast<double>(program.duration.count()) * share)};
    }
    record.duration += process_.driver_time() - driver;
  }

  void declare(BatchRecord& record) {
    record.task_weights = shares_.weights();
    if (record.result == StepResult::oom) return;  // it came to no loss and no gradient
    losses_ = setup_.losses.at(number_ - 1);
    norms_ = setup_.gradient_norms.at(number_ - 1);
    if (setup_.loss.balance && !norms_.empty()) {
      shares_.set_weights(balanced_weights(norms_, setup_.loss.alpha));
    }
    record.task_losses = losses_;
    record.gradient_norms = norms_;
    record.task_weights = shares_.weights();
  }

  void tell(const std::vector<SampleId>& batch, BatchRecord& record) {
    const bool failed = record.result == StepResult::oom;
    const BatchOutcome outcome{
        .batch = batch,
        .shape = record.shape,
        .result = record.result,
        .rise = (failed ? record.wanted : record.peak_allocated) - record.allocated_before,
        .typical = ran_ > 1 && !record.checkpointing};
    const AfterOom next = composer_.told(outcome);
    if (failed && next == AfterOom::ask) candidates_.put_back(batch);
    if (failed && next == AfterOom::skip) run_.totals.skipped += record.shape.samples;
    if (failed && next == AfterOom::skip) epoch_totals_.skipped += record.shape.samples;
    failed_in_a_row_ = failed ? failed_in_a_row_ + 1 : 0;
    if (!failed) accumulate(record);
    run_.totals.add(record);
    epoch_totals_.add(record);
    if (setup_.listener != nullptr) setup_.listener->batch_ends(record);
    if (failed_in_a_row_ == kMostFailedBatchesInARow) {
      run_.ended_early = std::to_string(failed_in_a_row_) + " batches in a row ran out of memory";
    }
  }

  void accumulate(BatchRecord& record) {
    shares_.add(record.shape);
    const double usage = static_cast<double>(record.peak_allocated) / static_cast<double>(record.total);
    const std::int64_t effective = accumulation_.samples() + record.shape.samples;
    record.steps = accumulation_.add(record.shape.samples, usage);
    if (!record.steps) return;
    record.effective = effective;
    step(effective, /*last=*/false);
    if (setup_.loss.scale_learning_rate) {
      record.learning_rate_scale = learning_rate_scale(target(), static_cast<double>(effective));
    }
  }

  [[nodiscard]] double target() const { return static_cast<double>(setup_.target_batch); }

  void step(std::int64_t effective, bool last) {
    const double scale =
        setup_.loss.scale_gradient ? gradient_scale(target(), static_cast<double>(effective)) : 1;
    shares_.step(rule_.kind == AccumulationRule::Kind::exact, scale);
    ++steps_;
    run_.totals.add_step(effective, last);
    epoch_totals_.add_step(effective, last);
  }

  void end_epoch() {
    if (accumulation_.samples() > 0) {
      step(accumulation_.samples(), /*last=*/true);
      accumulation_.close();
    }
    composer_.epoch_ends();
    epoch_totals_.duration = now_ - epoch_began_;
    if (setup_.listener != nullptr) setup_.listener->epoch_ends(epoch_, epoch_totals_);
    epoch_totals_ = {};
    epoch_began_ = now_;
  }

  const EpochSetup& setup_;
  Composer& composer_;
  AccumulationRule rule_;
  Accumulation accumulation_;
  GradientShares shares_;
  SimulatedCard card_;
  SimulatedProcess process_;
  Candidates candidates_;
  std::vector<double> losses_;  ///< declared for the batch that runs
  std::vector<double> norms_;
  std::int64_t epoch_ = 0;
  bool in_epoch_ = false;    ///< `candidates_` are in the middle of an epoch that an earlier run began
  std::int64_t number_ = 0;  ///< of the last batch, over all runs
  std::int64_t ran_ = 0;     ///< batches of this run
  std::int64_t steps_ = 0;
  std::int64_t failed_in_a_row_ = 0;
  SimTime began_{0};  ///< when this run began
  SimTime now_{0};
  SimTime epoch_began_{0};
  EpochTotals epoch_totals_;
  EpochRun run_;
};

}  // namespace

EpochRun run_epochs(const EpochSetup& setup, Composer& composer) { return EpochLoop{setup, composer}.run(); }

}  // namespace vramlab
