// Cases of the field on batches under a memory budget (spec/cases.md).
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runs/epoch_rig.hpp"

namespace vramlab {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Every token of a padded row takes 1 MiB, in pieces of 2 MiB.
SampleSizeModel mebibyte_a_token() { return SampleSizeModel{{.per_token = 1_MiB}}; }

/// The batches that a composer answers, without a process: everything fits.
std::vector<std::vector<std::int64_t>> composed(const std::vector<std::int64_t>& lengths,
                                                const std::string& profile, const OptionMap& options) {
  const auto composer = composer_of("planned-batches", profile, options);
  const auto samples = samples_of(lengths);
  Candidates candidates{samples.size(), 1, 0, /*shuffle=*/false};
  std::vector<std::vector<std::int64_t>> batches;
  while (candidates.left() > 0) {
    const auto answer =
        composer->decide({.samples = samples, .candidates = candidates, .most = 1000}, Observation{});
    candidates.take(answer.batch);
    batches.emplace_back();
    for (const SampleId id : answer.batch) batches.back().push_back(lengths[id]);
  }
  return batches;
}

// K3-07 (torchdata issue 788).
TEST(PaddingCounts, LengthsAreHeldAgainstTheLimitWithTheirPadding) {
  const std::vector<std::int64_t> lengths{100, 10, 10, 10, 100};
  const OptionMap limit{{"max_tokens", std::int64_t{150}, {}}, {"measure", "padded", {}}};
  EXPECT_THAT(composed(lengths, "constant-token", limit),
              ElementsAre(ElementsAre(100), ElementsAre(10, 10, 10), ElementsAre(100)));
  const OptionMap unpadded{{"max_tokens", std::int64_t{150}, {}}};
  const auto batches = composed(lengths, "constant-token", unpadded);
  EXPECT_THAT(batches.front(), ElementsAre(100, 10, 10, 10));  // 400 positions with the padding
}

// K3-08 (lhotse issue 640): 35 cuts of 7.3 to 11.4 s, 299 s together, 399 s padded, limit 300 s; in tenths.
TEST(PaddingCounts, ASumUnderTheLimitIsOverItWhenPadded) {
  std::vector<std::int64_t> lengths{114};
  for (int i = 0; i < 34; ++i) lengths.push_back(73 + (i * 7) % 24);
  lengths.back() += 2990 - std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  ASSERT_LE(lengths.back(), 114);
  ASSERT_GE(lengths.back(), 73);
  const OptionMap limit{{"max_tokens", std::int64_t{3000}, {}}};
  const auto summed = composed(lengths, "constant-token", limit);
  ASSERT_EQ(summed.size(), 1u);
  EXPECT_EQ(summed.front().size() * 114, 3990u);
  const auto padded = composed(lengths, "constant-token", overlay(limit, {{"measure", "padded", {}}}));
  EXPECT_EQ(padded.front().size(), 26u);
}

// K3-06 (DiffSinger PR 327, tensor2tensor issue 581): costs of 4 to 7 GiB, one of 8.2, 8 GiB to have.
TEST(LongestFirst, TheBatchThatFailsFailsAtOnce) {
  const SampleSizeModel model = mebibyte_a_token();
  std::vector<std::int64_t> lengths(1000);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = 4096 + static_cast<std::int64_t>(i * 1237 % 3073);
  }
  lengths[617] = 8397;  // 8.2 GiB
  EpochSetup setup = epochs_of(model, samples_of(lengths), 8_GiB);
  setup.shuffle = true;
  setup.seed = 7;
  Candidates order{lengths.size(), setup.seed, 0, true};
  const auto shuffled = order.look(lengths.size());
  const auto place = std::find(shuffled.begin(), shuffled.end(), SampleId{617}) - shuffled.begin();
  ASSERT_GT(place, 0);

  const auto fixed = composer_of("planned-batches", "fixed");
  const EpochRun as_shuffled = run_epochs(setup, *fixed);
  EXPECT_EQ(as_shuffled.totals.ooms, 1);
  EXPECT_EQ(as_shuffled.totals.first_oom, place + 1);
  const auto sorted = composer_of("planned-batches", "longest-first");
  const EpochRun longest_first = run_epochs(setup, *sorted);
  EXPECT_EQ(longest_first.totals.ooms, 1);
  EXPECT_EQ(longest_first.totals.first_oom, 1);
}

// K3-11 (metaseq issue 304): every batch fails, also at the minimum.
TEST(OomGuardian, GivesUpAfterAFixedNumberOfHalvings) {
  const SampleSizeModel model = mebibyte_a_token();
  EpochSetup setup = epochs_of(model, samples_of(std::vector<std::int64_t>(64, 2048)), 1_GiB);
  setup.target_batch = 16;
  KeptBatches kept;
  setup.listener = &kept;
  const auto guarded = composer_of("planned-batches", "fixed", {{"guardian", true, {}}});
  const EpochRun run = run_epochs(setup, *guarded);
  EXPECT_THAT(kept.sizes(StepResult::oom), ElementsAre(16, 8, 4, 2));  // three halvings
  EXPECT_EQ(run.totals.samples, 0);
  EXPECT_THAT(run.ended_early, HasSubstr("2 samples still ran out of memory after 3 halvings"));
}

// K3-11, where nobody recovers at all.
TEST(EpochLoop, EndsWhenBatchAfterBatchFails) {
  const SampleSizeModel model = mebibyte_a_token();
  EpochSetup setup = epochs_of(model, samples_of(std::vector<std::int64_t>(100, 2048)), 1_GiB);
  const auto fixed = composer_of("planned-batches", "fixed");
  const EpochRun run = run_epochs(setup, *fixed);
  EXPECT_EQ(run.totals.ooms, kMostFailedBatchesInARow);
  EXPECT_THAT(run.ended_early, HasSubstr("in a row"));
}

// The last step of an epoch has what is left and does not count; an epoch of one step has none that does.
TEST(EpochTotals, TheSmallestStepIsThatOfAllEpochs) {
  EpochTotals totals;
  totals.add_step(4, false);
  totals.add_step(6, false);
  totals.add_step(1, true);
  EpochTotals later;
  later.add_step(5, false);
  totals.add(later);
  EXPECT_EQ(totals.smallest_step, 4);
  EpochTotals one;
  one.add_step(3, true);
  totals.add(one);
  EXPECT_EQ(totals.smallest_step, 4);
  later.add_step(2, false);
  totals.add(later);
  EXPECT_EQ(totals.smallest_step, 2);
  EXPECT_EQ(totals.largest_step, 6);
}

// K2-12a (EuroEval PR 69): batch 32, accumulation 1, limit 16.
TEST(Accumulation, KeepsTheEffectiveBatchWhenTheBatchIsHalved) {
  const SampleSizeModel model = mebibyte_a_token();
  EpochSetup setup = epochs_of(model, samples_of(std::vector<std::int64_t>(96, 64)), 1_GiB);  // 16 samples
  setup.target_batch = 32;
  KeptBatches kept;
  setup.listener = &kept;
  const auto composer =
      composer_of("planned-batches", "fixed",
                  {{"guardian", true, {}}, {"keep_limit", true, {}}, {"batch_size", std::int64_t{32}, {}}});
  const EpochRun run = run_epochs(setup, *composer);
  EXPECT_EQ(run.totals.ooms, 1);
  EXPECT_THAT(kept.sizes(StepResult::ok), ElementsAre(16, 16, 16, 16, 16, 16));
  EXPECT_EQ(run.totals.steps, 3);
  EXPECT_EQ(run.totals.smallest_step, 32);
  EXPECT_EQ(run.totals.largest_step, 32);
}

// K2-12b (transformers issue 25956): 100 samples, 10 epochs; start 8, limit 2; stopped at step 150.
TEST(EpochLoop, ARestartGoesOnWithTheBatchThatFitted) {
  const SampleSizeModel model = mebibyte_a_token();
  EpochSetup setup = epochs_of(model, samples_of(std::vector<std::int64_t>(100, 512)), 1_GiB);  // 2 samples
  setup.target_batch = 2;
  setup.epochs = 10;
  const OptionMap options{{"guardian", true, {}},
                          {"keep_limit", true, {}},
                          {"reset_at_epoch_end", false, {}},
                          {"accumulation", "adaptive", {}},  // one micro-batch a step, as in the report
                          {"batch_size", std::int64_t{8}, {}}};
  setup.stop_after = 152;  // 150 steps and the two batches, of 8 and 4, that failed
  const EpochRun first = run_epochs(setup, *composer_of("planned-batches", "fixed", options));
  EXPECT_EQ(first.totals.ooms, 2);
  EXPECT_EQ(first.totals.batches, 150);

  setup.stop_after = 0;
  setup.start = first.state;
  KeptBatches kept;
  setup.listener = &kept;
  const EpochRun second = run_epochs(setup, *composer_of("planned-batches", "fixed", options));
  EXPECT_EQ(second.totals.ooms, 0);
  EXPECT_EQ(second.totals.batches, 350);
  EXPECT_THAT(kept.sizes(StepResult::ok), Each(2u));
}

// Else the batch that failed would be tried once more as it was.
TEST(OomGuardian, ARestartGoesOnWithTheHalves) {
  const SampleSizeModel model = mebibyte_a_token();
  EpochSetup setup = epochs_of(model, samples_of(std::vector<std::int64_t>(32, 64)), 600_MiB);  // 9 samples
  setup.target_batch = 16;
  const OptionMap options{{"guardian", true, {}}};
  setup.stop_after = 1;
  const EpochRun first = run_epochs(setup, *composer_of("planned-batches", "fixed", options));
  EXPECT_EQ(first.totals.ooms, 1);
  KeptBatches kept;
  setup.listener = &kept;
  setup.stop_after = 2;
  setup.start = first.state;
  run_epochs(setup, *composer_of("planned-batches", "fixed", options));
  EXPECT_THAT(kept.sizes(StepResult::ok), ElementsAre(8, 8));
  EXPECT_THAT(kept.sizes(StepResult::oom), ElementsAre());
}

// Else a run whose process ends before the 32nd failure would go on for ever.
TEST(EpochLoop, ARestartDoesNotForgetFailures) {
  const SampleSizeModel model = mebibyte_a_token();
  EpochSetup setup = epochs_of(model, samples_of(std::vector<std::int64_t>(100, 2048)), 1_GiB);
  setup.stop_after = 10;
  std::int64_t ooms = 0;
  EpochRun run;
  for (int process = 0; process < 4; ++process) {
    run = run_epochs(setup, *composer_of("planned-batches", "fixed"));
    ooms += run.totals.ooms;
    setup.start = run.state;
  }
  EXPECT_EQ(ooms, kMostFailedBatchesInARow);
  EXPECT_THAT(run.ended_early, HasSubstr("in a row"));
}

// Checkpointing is the last resort; a workload recorded with and without it.
TEST(OomGuardian, SwitchesCheckpointingOnWhenHalvingDoesNotHelp) {
  const SampleSizeModel model = mebibyte_a_token();
  const SampleSizeModel checkpointed{{.per_token = 256_KiB}};
  EpochSetup setup = epochs_of(model, samples_of({64, 64, 2048, 64}), 1_GiB);
  setup.checkpointed = &checkpointed;
  setup.target_batch = 4;
  KeptBatches kept;
  setup.listener = &kept;
  const auto composer =
      composer_of("planned-batches", "fixed", {{"guardian", true, {}}, {"checkpointing", true, {}}});
  const EpochRun run = run_epochs(setup, *composer);
  EXPECT_EQ(run.ended_early, "");
  EXPECT_EQ(run.totals.samples, 4);
  // all four, the half with the long one, and the long one itself fail
  EXPECT_THAT(kept.sizes(StepResult::oom), ElementsAre(4, 2, 1));
  ASSERT_EQ(kept.batches.size(), 6u);
  EXPECT_TRUE(kept.batches[4].checkpointing);
  EXPECT_THAT(kept.batches[4].samples, ElementsAre(2u));
}

/// Trains on one sample at a time, and keeps what it saw of the card.
class Onlooker : public Composer {
 public:
  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override {
    seen.push_back(observation.memory);
    const auto waiting = question.candidates.look(1);
    return {.batch = {waiting.begin(), waiting.end()}};
  }
  AfterOom told(const BatchOutcome&) override { return AfterOom::skip; }
  [[nodiscard]] AccumulationRule accumulation() const override { return {}; }
  [[nodiscard]] std::vector<double> save() const override { return {}; }
  void restore(std::span<const double>) override {}

  std::vector<MemoryView> seen;
};

TEST(EpochLoop, AComposerSeesWhatNobodyHoldsOfTheCard) {
  const SampleSizeModel model = mebibyte_a_token();
  EpochSetup setup = epochs_of(model, samples_of({100, 200}), 1_GiB);
  setup.others = {{.bytes = 256_MiB}};
  Onlooker composer;
  run_epochs(setup, composer);
  ASSERT_EQ(composer.seen.size(), 2u);
  EXPECT_GT(composer.seen[1].reserved, 0u);
  for (const MemoryView& memory : composer.seen) {
    ASSERT_TRUE(memory.device_free);
    EXPECT_EQ(memory.reserved + *memory.device_free, 768_MiB);
  }
}

TEST(EpochLoop, ALaterMicroBatchKeepsTheGradientsOfTheOneBefore) {
  StepProgram step;
  step.persistent_slots = 2;
  step.slots = 3;
  step.ops = {{MemoryOpKind::free, 1, 0},
              {MemoryOpKind::allocate, 2, 40_MiB},
              {MemoryOpKind::allocate, 1, 20_MiB},
              {MemoryOpKind::free, 2, 0}};
  const StepProgram later = accumulating(step);
  EXPECT_THAT(later.ops, ElementsAre(MemoryOp{MemoryOpKind::allocate, 2, 40_MiB},
                                     MemoryOp{MemoryOpKind::allocate, 3, 20_MiB},
                                     MemoryOp{MemoryOpKind::free, 3, 0}, MemoryOp{MemoryOpKind::free, 2, 0}));
}

}  // namespace
}  // namespace vramlab
