// Epochs and searches on the event engine: other processes, phases, faults, several cards and step limits, in
// figures that follow from what is declared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/linear.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/runs/batch_search_loop.hpp"
#include "tests/runs/epoch_rig.hpp"

namespace vramlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Calls of this driver take no time.
DriverTimes no_time() {
  const std::vector<MeasuredTime> none{{1_MiB, SimTime{0}}, {2_MiB, SimTime{0}}};
  return {.mallocs = none, .frees = none, .creates = none, .maps = none, .unmaps = none};
}

SimTime ms(std::int64_t count) { return SimTime{count * 1'000'000}; }

/// Batches of one sample, of which every token takes 1 MiB, and steps of 50 ms.
class EpochConditions : public testing::Test, protected BatchListener {
 protected:
  EpochRun run(const std::vector<std::int64_t>& lengths, Bytes card = 4_GiB) {
    EpochSetup all = epochs_of(model, samples_of(lengths), card);
    all.process.driver_times = no_time();
    all.phases = setup.phases;
    all.faults = setup.faults;
    all.others = setup.others;
    all.more_cards = setup.more_cards;
    all.max_steps = setup.max_steps;
    all.epochs = setup.epochs;
    all.listener = this;
    const auto composer = composer_of("planned-batches", "fixed");
    return run_epochs(all, *composer);
  }

  void batch_ends(const BatchRecord& batch) override { batches.push_back(batch); }
  void epoch_ends(std::int64_t, const EpochTotals& totals) override { epochs.push_back(totals); }

  SampleSizeModel model{{.per_token = 1_MiB}};
  EpochSetup setup;
  std::vector<BatchRecord> batches;  // what they refer to is gone
  std::vector<EpochTotals> epochs;
};

TEST_F(EpochConditions, APhaseRunsAfterEveryFewBatchesAndShowsInThePeak) {
  setup.phases = {{.name = "validation", .every = 2, .samples = 4}};
  setup.epochs = 2;
  const EpochRun result = run({100, 100, 100, 100, 100, 100});
  ASSERT_EQ(batches.size(), 12u);
  EXPECT_EQ(batches[1].start, ms(50));
  EXPECT_EQ(batches[2].start, ms(150));  // a phase of 50 ms lies between
  EXPECT_EQ(batches[3].start, ms(200));
  EXPECT_EQ(batches[4].start, ms(300));
  EXPECT_EQ(batches[2].peak_allocated, 100_MiB);
  EXPECT_EQ(result.totals.peak_allocated.bytes, 400_MiB);
  EXPECT_EQ(result.phases.time, ms(6 * 50));
  EXPECT_EQ(result.phases.ooms, 0);
  EXPECT_EQ(result.totals.duration, ms(12 * 50 + 6 * 50));
  EXPECT_EQ(epochs[0].duration, ms(6 * 50 + 3 * 50));
  EXPECT_EQ(epochs[1].peak_allocated.bytes, 400_MiB);
}

TEST_F(EpochConditions, AFailedPhaseIsCountedAndTheRunGoesOn) {
  setup.phases = {{.name = "validation", .every = 3, .samples = 6}};
  const EpochRun result = run({100, 100, 100, 100, 100, 100}, 512_MiB);
  EXPECT_EQ(result.phases.ooms, 2);
  EXPECT_EQ(result.totals.ooms, 0);
  EXPECT_EQ(result.totals.samples, 6);
  EXPECT_TRUE(result.complete);
}

TEST_F(EpochConditions, AnErrorLosesExactlyTheBatchesThatAreDrawn) {
  setup.faults = {.seed = 3, .error_chance = 0.25};
  const EpochRun result = run(std::vector<std::int64_t>(200, 10));
  ASSERT_EQ(batches.size(), 200u);
  std::int64_t lost = 0;
  for (const BatchRecord& batch : batches) {
    EXPECT_EQ(batch.result == StepResult::error, setup.faults.has_error(batch.number)) << batch.number;
    lost += batch.result == StepResult::error ? 1 : 0;
  }
  EXPECT_GT(lost, 20);
  EXPECT_EQ(result.totals.failures, lost);
  EXPECT_EQ(result.totals.skipped, lost);
  EXPECT_EQ(result.totals.samples, 200 - lost);
  EXPECT_EQ(result.totals.ooms, 0);
}

TEST_F(EpochConditions, ALeakLeavesItsBytesBehindAtEveryBatch) {
  setup.faults.leak = {.per_step = 16_MiB, .from = 2, .to = 4};
  const EpochRun result = run({100, 100, 100, 100, 100, 100});
  EXPECT_EQ(batches[1].allocated_before, 0u);
  EXPECT_EQ(batches[2].allocated_before, 16_MiB);
  EXPECT_EQ(batches[5].allocated_before, 48_MiB);
  EXPECT_EQ(batches[5].peak_allocated, 148_MiB);
  EXPECT_EQ(result.faults.leaked, 48_MiB);
}

TEST_F(EpochConditions, ASearchNeedsMoreAtTheFirstBatchOfAShape) {
  setup.faults.search = 64_MiB;
  const EpochRun result = run({100, 100, 200, 100, 200});
  std::vector<Bytes> peaks;
  for (const BatchRecord& batch : batches) peaks.push_back(batch.peak_allocated);
  EXPECT_THAT(peaks, ElementsAre(164_MiB, 100_MiB, 264_MiB, 100_MiB, 200_MiB));
  EXPECT_EQ(result.faults.heavy_steps, 2);
}

TEST_F(EpochConditions, AnOutlierCanMakeABatchFail) {
  setup.faults = {.seed = 2, .outlier = 1_GiB, .outlier_chance = 0.25};
  const EpochRun result = run(std::vector<std::int64_t>(100, 100), 1_GiB);
  for (const BatchRecord& batch : batches) {
    EXPECT_EQ(batch.result == StepResult::oom, setup.faults.has_outlier(batch.number)) << batch.number;
  }
  EXPECT_GT(result.totals.ooms, 10);
  EXPECT_EQ(result.faults.heavy_ooms, result.totals.ooms);
}

TEST_F(EpochConditions, OtherProcessesComeAndGoByTheClock) {
  setup.others = {{.from = ms(100), .to = ms(200), .bytes = 3_GiB}};
  run({100, 600, 1500, 100, 100, 1500});  // steps of 50 ms; what fails at once takes none
  EXPECT_EQ(batches[2].start, ms(100));
  EXPECT_EQ(batches[2].result, StepResult::oom);
  EXPECT_EQ(batches[3].result, StepResult::ok);
  EXPECT_EQ(batches[5].start, ms(200));
  EXPECT_EQ(batches[5].result, StepResult::ok);
}

TEST_F(EpochConditions, AStepLimitEndsTheRunAndSaysSo) {
  setup.max_steps = 4;
  const EpochRun cut = run({100, 100, 100, 100, 100, 100});
  EXPECT_EQ(cut.totals.batches, 4);
  EXPECT_EQ(cut.ended_early, "max_steps: 4 batches were run");
  EXPECT_FALSE(cut.complete);
  setup.max_steps = 6;
  EXPECT_EQ(run({100, 100, 100, 100, 100, 100}).ended_early, "");
}

TEST_F(EpochConditions, ABatchFailsIfItFailsOnOneOfTheCards) {
  setup.more_cards = {{.card_total = 512_MiB, .context_bytes = 0, .driver_times = no_time()}};
  const EpochRun result = run({300, 600});
  EXPECT_EQ(batches[0].result, StepResult::ok);
  EXPECT_EQ(batches[0].total, 512_MiB);  // 300 MiB are a larger share of the second card
  EXPECT_EQ(batches[1].result, StepResult::oom);
  EXPECT_EQ(batches[1].total, 512_MiB);
  EXPECT_EQ(result.totals.peak_allocated.bytes, 300_MiB);
  EXPECT_EQ(result.totals.peak_allocated.total, 512_MiB);
}

/// 1 GiB + 0.5 GiB a sample on a card of 8 GiB, and steps of 100 ms: 14 samples are the most.
class SearchConditions : public testing::Test {
 protected:
  BatchSearchRun search() const {
    const OptionMap whole{{"safety_margin", 1.0, {}}, {"reduction", 1.0, {}}};
    const auto searcher = builtin_policies()->searchers.make(
        {.use = "binsearch", .profile = {}, .options = whole, .where = {}});
    return run_batch_search(setup, *searcher);
  }

  LinearWorkload model{{.name = "line",
                        .fixed = 1_GiB,
                        .per_sample = 512_MiB,
                        .batch = {"batch", 1, 4096},
                        .time = {.floor_seconds = 0.1}}};
  BatchSearchSetup setup{.model = &model,
                         .high = 4096,
                         .phases = {{.name = "training", .point = {1}}},
                         .cards = {{.card_total = 8_GiB, .context_bytes = 0, .driver_times = no_time()}}};
};

TEST_F(SearchConditions, OtherProcessesTakeTheirShare) {
  EXPECT_EQ(search().answer.batch, 14);
  setup.others = {{.bytes = 2_GiB}};
  EXPECT_EQ(search().answer.batch, 10);
  EXPECT_EQ(largest_batch(setup), 10);
}

// The probes of 1, 2 and 4 take 200 ms each; the process comes in the middle of the third.
TEST_F(SearchConditions, AProcessThatComesLaterMakesTheLargerProbesFail) {
  setup.others = {{.from = ms(500), .bytes = 4_GiB}};
  const BatchSearchRun result = search();
  EXPECT_EQ(result.trials[2].probe.cards[0].free, 8_GiB);
  EXPECT_EQ(result.trials[3].probe.batch, 8);
  EXPECT_EQ(result.trials[3].probe.cards[0].free, 4_GiB);
  EXPECT_EQ(result.trials[3].probe.outcome, ProbeOutcome::oom);
  EXPECT_EQ(result.answer.batch, 6);
  EXPECT_EQ(largest_batch(setup), 14);  // it is not there when the search begins
  setup.start = ms(500);
  EXPECT_EQ(largest_batch(setup), 6);
}

TEST_F(SearchConditions, AnErrorEndsExactlyTheProbeItIsDrawnIn) {
  setup.faults = {.seed = 1, .error_chance = 0.2};
  while (setup.faults.has_error(1) || setup.faults.has_error(2)) ++setup.faults.seed;
  std::int64_t first = 3;
  while (!setup.faults.has_error(first)) ++first;
  const BatchSearchRun result = search();
  std::int64_t steps = 0;
  for (const SearchTrial& trial : result.trials) {
    steps += trial.steps[0];
    EXPECT_EQ(trial.probe.outcome, steps < first ? ProbeOutcome::ok : ProbeOutcome::failed);
  }
  EXPECT_EQ(steps, first);
  EXPECT_EQ(result.answer.action, SearcherAnswer::Action::give_up);
  EXPECT_EQ(result.answer.reason, "CUDA error: unspecified launch failure");
}

TEST_F(SearchConditions, OutliersMakeTheAnswerSmallerAndNotTheEdge) {
  setup.faults = {.outlier = 1_GiB, .outlier_chance = 1};
  EXPECT_EQ(search().answer.batch, 12);
  EXPECT_EQ(largest_batch(setup), 14);
}

TEST_F(SearchConditions, ALeakIsHeldAfterTheCleanUp) {
  setup.faults.leak = {.per_step = 16_MiB};
  const BatchSearchRun result = search();
  ASSERT_EQ(result.trials.size(), 1u);
  EXPECT_EQ(result.trials[0].probe.outcome, ProbeOutcome::held);
  EXPECT_EQ(result.trials[0].probe.cards[0].current, 32_MiB);
  EXPECT_EQ(result.answer.action, SearcherAnswer::Action::give_up);
}

TEST_F(SearchConditions, AStepLimitEndsTheSearchAfterAWholeProbe) {
  setup.max_steps = 5;
  const BatchSearchRun result = search();
  EXPECT_EQ(result.trials.size(), 3u);  // of two steps each
  EXPECT_EQ(result.answer.action, SearcherAnswer::Action::give_up);
  EXPECT_EQ(result.answer.reason, "max_steps: no end after 6 steps");
}

TEST_F(SearchConditions, AnEpochAfterTheSearchGoesOnByTheSameClock) {
  setup.others = {{.from = ms(1000), .bytes = 4_GiB}};
  SearchEpochSetup epoch{
      .iterations = 20, .phases_every = 0, .seed = 1, .buckets = {{.point = {14}, .draws = {}}}};
  const SearchEpochRun alone = run_search_epoch(setup, epoch);
  EXPECT_EQ(alone.ooms, 0);  // its memory is its own before the process comes
  EXPECT_EQ(alone.peak_share, 1);
  EXPECT_EQ(alone.reserved_share, 1);
  epoch.start = ms(1000);
  EXPECT_EQ(run_search_epoch(setup, epoch).ooms, 10);
  setup.faults = {.seed = 1, .error_chance = 1};
  epoch.start = SimTime{0};
  const SearchEpochRun errors = run_search_epoch(setup, epoch);
  EXPECT_EQ(errors.iterations, 20);
  EXPECT_EQ(errors.samples, 0);
}

// A tuner beside a composer. Rows of 10 tokens take 10 MiB each; a batch takes what its budget allows.

/// Takes as many samples as its budget holds.
class BudgetFiller : public Composer {
 public:
  ComposerAnswer decide(const ComposerQuestion& question, const Observation&) override {
    const auto count = static_cast<std::size_t>(question.budget.value() / 10_MiB);
    const auto waiting = question.candidates.look(count);
    return {.batch = {waiting.begin(), waiting.end()}};
  }
  AfterOom told(const BatchOutcome& outcome) override {
    results.push_back(outcome.result);
    rises.push_back(outcome.rise);
    typical.push_back(outcome.typical);
    return AfterOom::ask;
  }
  [[nodiscard]] bool obeys_budget() const override { return true; }
  [[nodiscard]] AccumulationRule accumulation() const override { return {}; }
  [[nodiscard]] std::vector<double> save() const override { return {}; }
  void restore(std::span<const double>) override {}

  std::vector<StepResult> results;
  std::vector<Bytes> rises;
  std::vector<bool> typical;
};

/// What the tuner of a test was asked and told; it outlives the tuners.
struct TunerNotes {
  std::vector<TunerQuestion> questions;
  std::vector<Observation> observations;
  std::vector<PhaseReport> phases;
};

/// Moves by 50 up, and to a half after a failure. Never resets the peak unless `resets`.
class ScriptedTuner : public Tuner {
 public:
  ScriptedTuner(TunerNotes& notes, bool resets) : notes_(notes), resets_(resets) {}
  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    notes_.questions.push_back(question);
    notes_.observations.push_back(observation);
    const std::int64_t now = question.point.front();
    return {.delta = {question.result == StepResult::oom ? now / 2 - now : 50},
            .reset_peak = resets_,
            .reason = "as scripted"};
  }
  TunerAnswer note_phase(const PhaseReport& phase, const Observation&) override {
    notes_.phases.push_back(phase);
    return {};
  }
  [[nodiscard]] std::string save() const override { return "scripted"; }
  void load(const std::string& text) override {
    if (text != "scripted") throw InputError("", "not mine");
  }

 private:
  TunerNotes& notes_;
  bool resets_;
};

class TunedEpoch : public EpochConditions {
 protected:
  EpochSetup tuned(std::int64_t samples, std::int64_t start, std::int64_t high, Bytes card = 4_GiB) {
    EpochSetup all =
        epochs_of(model, samples_of(std::vector<std::int64_t>(static_cast<std::size_t>(samples), 10)), card);
    all.target_batch = 0;
    all.process.driver_times = no_time();
    all.listener = this;
    all.tuning = BatchTuning{.moves = BatchTuning::Moves::budget,
                             .space = {{{.name = "budget", .low = 10, .high = high}}},
                             .start = {start},
                             .make = [this] { return std::make_unique<ScriptedTuner>(notes, resets); }};
    return all;
  }

  TunerNotes notes;
  BudgetFiller composer;
  bool resets = true;
};

// 200 MiB, of which 100 are another process's: ten samples fit, and the fifteen of the second batch fail at
// the eleventh, with ten allocated. The first step of a process teaches nothing.
TEST_F(TunedEpoch, AComposerHearsWhatWasWantedAndWhichStepWasTheFirst) {
  EpochSetup shared = tuned(30, 100, 180, 200_MiB);
  shared.others = {{.from = SimTime{0}, .to = ms(1000), .bytes = 100_MiB}};
  run_epochs(shared, composer);
  ASSERT_GE(composer.results.size(), 2u);
  EXPECT_EQ(composer.results[0], StepResult::ok);
  EXPECT_EQ(composer.results[1], StepResult::oom);
  EXPECT_EQ(composer.rises[0], 100_MiB);
  EXPECT_EQ(composer.rises[1], 110_MiB);
  EXPECT_FALSE(composer.typical[0]);
  EXPECT_TRUE(composer.typical[1]);
}

TEST_F(TunedEpoch, ABudgetCountsFromTheNextBatchOnAndStaysInItsBounds) {
  const EpochRun run = run_epochs(tuned(10 + 15 + 18 + 18, 100, 180), composer);
  ASSERT_EQ(batches.size(), 4u);
  std::vector<Bytes> budgets;
  std::vector<Bytes> peaks;
  for (const BatchRecord& batch : batches) {
    budgets.push_back(batch.limits.budget.value());
    peaks.push_back(batch.peak_allocated);
  }
  EXPECT_THAT(budgets, ElementsAre(100_MiB, 150_MiB, 180_MiB, 180_MiB));
  EXPECT_EQ(peaks, budgets);
  ASSERT_EQ(run.adjustments.size(), 2u);
  EXPECT_EQ(run.adjustments[0].iteration, 1);
  EXPECT_EQ(run.adjustments[1].iteration, 2);
  EXPECT_THAT(run.adjustments[1].to, ElementsAre(180));
  EXPECT_EQ(run.adjustments[1].time, ms(100));
  EXPECT_THAT(run.final_point, ElementsAre(180));
}

TEST_F(TunedEpoch, AFailedBatchIsToldToComposerAndTuner) {
  const EpochRun run = run_epochs(tuned(16 + 8, 160, 400, 128_MiB), composer);
  // Batches of 16, 8, 13, 6 and 10 samples.
  EXPECT_EQ(run.totals.ooms, 2);
  ASSERT_EQ(notes.questions.size(), 5u);
  EXPECT_EQ(notes.questions[0].result, StepResult::oom);
  EXPECT_EQ(notes.questions[0].asked, 10_MiB);  // a row
  EXPECT_THAT(notes.questions[1].point, ElementsAre(80));
  EXPECT_TRUE(run.adjustments[0].reason.starts_with("oom"));
  EXPECT_THAT(composer.results,
              ElementsAre(StepResult::oom, StepResult::ok, StepResult::oom, StepResult::ok, StepResult::ok));
}

TEST_F(TunedEpoch, ItIsToldOfPhasesOfItsOwnProcessAndItsPeaksLastUntilItResetsThem) {
  SampleSizeModel other{{.per_token = 1_MiB}};
  EpochSetup all = tuned(10 + 15 + 20, 100, 400);
  all.phases = {{.name = "validation", .every = 1, .samples = 30},
                {.name = "elsewhere", .every = 1, .samples = 40, .model = &other}};
  resets = false;
  run_epochs(all, composer);
  ASSERT_EQ(notes.phases.size(), 6u);
  EXPECT_TRUE(notes.phases[0].begins);
  EXPECT_FALSE(notes.phases[1].begins);
  EXPECT_EQ(notes.phases[1].name, "validation");
  EXPECT_EQ(notes.phases[1].peak_allocated, 300_MiB);
  EXPECT_THAT(notes.phases[1].ran, ElementsAre(150));  // the batch before it moved it
  ASSERT_EQ(notes.observations.size(), 3u);
  EXPECT_EQ(notes.observations[0].memory.peak_allocated, 100_MiB);
  EXPECT_TRUE(notes.observations[0].new_process);
  EXPECT_FALSE(notes.observations[0].after_phase);
  EXPECT_EQ(notes.observations[1].memory.peak_allocated, 300_MiB);
  EXPECT_TRUE(notes.observations[1].after_phase);

  notes = {};
  resets = true;
  all.phases.clear();
  run_epochs(all, composer);
  EXPECT_EQ(notes.observations[1].memory.peak_allocated, 150_MiB);
}

TEST_F(TunedEpoch, AfterARestartItGoesOnFromWhatItHadSaved) {
  EpochSetup all = tuned(10 + 15 + 20, 100, 400);
  all.stop_after = 1;
  const EpochRun first = run_epochs(all, composer);
  all.start = first.state;
  const EpochRun second = run_epochs(all, composer);
  EXPECT_THAT(second.final_point, ElementsAre(200));
  EXPECT_TRUE(notes.observations[1].new_process);
  EXPECT_EQ(batches[1].peak_allocated, 150_MiB);

  all.start->tuner = "of another";
  EXPECT_THAT(run_epochs(all, composer).ended_early, HasSubstr("could not go on after the restart"));
}

TEST_F(TunedEpoch, ItMayMoveTheSamplesOfABatchInstead) {
  EpochSetup all = tuned(4 + 6 + 8, 4, 8);
  all.tuning->moves = BatchTuning::Moves::batch_size;
  all.tuning->space.parameters.front() = {.name = "batch_size", .low = 1, .high = 8};
  all.tuning->make = [] {
    return builtin_policies()->tuners.make(
        {"aimd", "", {{"increase", std::int64_t{2}, {}}, {"adjustment_frequency", std::int64_t{1}, {}}}, ""},
        {{{.name = "batch_size", .low = 1, .high = 8}}});
  };
  const auto fixed = composer_of("planned-batches", "fixed", {{"batch_size", std::int64_t{100}, {}}});
  const EpochRun run = run_epochs(all, *fixed);
  std::vector<std::int64_t> sizes;
  for (const BatchRecord& batch : batches) sizes.push_back(batch.shape.samples);
  EXPECT_THAT(sizes, ElementsAre(4, 6, 8));
  EXPECT_THAT(run.final_point, ElementsAre(8));
}

}  // namespace
}  // namespace vramlab
