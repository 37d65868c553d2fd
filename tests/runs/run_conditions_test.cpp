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
  EXPECT_EQ(run_search_epoch(setup, epoch).ooms, 0);  // its memory is its own before the process comes
  epoch.start = ms(1000);
  EXPECT_EQ(run_search_epoch(setup, epoch).ooms, 10);
  setup.faults = {.seed = 1, .error_chance = 1};
  epoch.start = SimTime{0};
  const SearchEpochRun errors = run_search_epoch(setup, epoch);
  EXPECT_EQ(errors.iterations, 20);
  EXPECT_EQ(errors.samples, 0);
}

}  // namespace
}  // namespace vramlab
