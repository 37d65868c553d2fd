// The parts of the memory-aware sampler, against published figures and reported cases.
#include <cmath>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/sample.hpp"
#include "policies/composers/oom_guardian.hpp"
#include "policies/contract/epoch_books.hpp"
#include "policies/contract/policy_set.hpp"
#include "policies/predictors/regression_predictor.hpp"
#include "policies/predictors/table_predictor.hpp"

namespace vramlab {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kTasks{"T1", "T2", "T3"};
constexpr double kGb = 1024.0 * 1024.0 * 1024.0;

/// `counts` samples of the tasks with 1, 3 and 4 images and rows of 100 tokens.
BatchShape batch_of(std::array<int, 3> counts) {
  const std::int32_t images[] = {1, 3, 4};
  BatchShape shape;
  for (std::uint32_t task = 0; task < 3; ++task) {
    for (int i = 0; i < counts[task]; ++i) shape.add({task, images[task], 51, 100});
  }
  return shape;
}

double gb(Bytes bytes) { return static_cast<double>(bytes) / kGb; }

// K2-14 (TorchSim tests/test_autobatching.py).
TEST(Packing, PutsCostsIntoBins) {
  const std::int64_t small[] = {1, 2, 1};
  EXPECT_EQ(pack(small, 2).size(), 2u);
  const std::int64_t large[] = {42, 24};
  EXPECT_THAT(pack(large, 20), ElementsAre(ElementsAre(0u), ElementsAre(1u)));
  const std::int64_t costs[] = {10, 10, 1, 2, 7};  // a, b, d, e, f; c costs 11 and is left out there
  EXPECT_THAT(pack(costs, 11), ElementsAre(ElementsAre(0u, 2u), ElementsAre(1u), ElementsAre(4u, 3u)));
}

std::int64_t largest_below(double factor, std::int64_t limit) {
  std::int64_t size = 1;
  while (next_size(size, factor) < limit) size = next_size(size, factor);
  return size;
}

// K2-14: Fibonacci numbers have the ratio 1.6; no factor makes an endless loop.
TEST(Packing, SizesGrowStepByStep) {
  EXPECT_EQ(largest_below(1.6, 10), 8);
  EXPECT_EQ(largest_below(1.1, 20), 18);
  EXPECT_EQ(largest_below(1.4, 20), 15);
  EXPECT_EQ(next_size(7, 0), 8);
}

// K2-14: a memory bound of 1 and an item that costs more is an error, not a loop.
TEST(Guardian, EndsWhereOneSampleDoesNotFit) {
  const auto composer =
      builtin_policies()->composers.make({"planned-batches", "fixed", {{"guardian", true, {}}}, ""}, kTasks);
  const std::vector<Sample> samples{{.tokens = 2}};
  Candidates candidates{1, 1, 0, false};
  const auto answer = composer->decide({.samples = samples, .candidates = candidates, .most = 1}, {});
  BatchShape shape;
  shape.add(samples[0]);
  composer->told({.batch = answer.batch, .shape = shape, .result = StepResult::oom, .rise = 2});
  const auto next = composer->decide({.samples = samples, .candidates = candidates, .most = 1}, {});
  EXPECT_EQ(next.action, ComposerAnswer::Action::give_up);
  EXPECT_THAT(next.reason, HasSubstr("1 sample still ran out of memory"));
}

// The published table: 0.15 + 0.12 + Σ images · (0.28 + 0.35) · multiplier.
TEST(TablePredictor, AddsUpThePublishedTable) {
  const TablePredictor table{kTasks, TablePredictor::Form::sum};
  EXPECT_NEAR(gb(table.predict(batch_of({1, 0, 0})).likely), 0.90, 1e-6);
  EXPECT_NEAR(gb(table.predict(batch_of({2, 1, 1})).likely), 0.27 + 0.63 * (2 + 3 * 1.85 + 4 * 1.87), 1e-6);
}

// The published table as its code computes it (`faithful`): 1 sample 0.90, 2: 0.38, 3: 0.08 GB.
TEST(TablePredictor, TheOriginalsFormCollapses) {
  const TablePredictor table{kTasks, TablePredictor::Form::collapsing};
  EXPECT_NEAR(gb(table.predict(batch_of({1, 0, 0})).likely), 0.90, 0.005);
  EXPECT_NEAR(gb(table.predict(batch_of({2, 0, 0})).likely), 0.38, 0.005);
  EXPECT_NEAR(gb(table.predict(batch_of({3, 0, 0})).likely), 0.08, 0.005);
}

// After 10 samples of a task its factor is mean actual / mean predicted; the original waits for all.
TEST(TablePredictor, IsCalibratedAfterTenSamples) {
  TablePredictor table{kTasks, TablePredictor::Form::sum};
  TablePredictor original{kTasks, TablePredictor::Form::collapsing};
  const auto half = static_cast<Bytes>((0.27 + 9 * 0.63 / 2) * kGb);
  table.learn(batch_of({9, 0, 0}), half);
  EXPECT_EQ(table.factor(0), 1);
  const auto one = static_cast<Bytes>((0.27 + 0.63 / 2) * kGb);
  table.learn(batch_of({1, 0, 0}), one);
  EXPECT_NEAR(table.factor(0), 0.5, 1e-6);
  EXPECT_EQ(table.factor(1), 1);
  original.learn(batch_of({10, 0, 0}), half);
  EXPECT_EQ(original.factor(0), 1);
}

TEST(RegressionPredictor, FindsAStraightLineFromBatchPeaksAlone) {
  RegressionPredictor regression{normal_quantile(0.99)};
  const auto taken = [](const BatchShape& batch) {
    return static_cast<Bytes>(30'000'000 * batch.images + 500'000 * batch.positions());
  };
  for (int i = 1; i <= 30; ++i) {
    const BatchShape batch = batch_of({i % 7 + 1, i % 5, i % 3});
    regression.learn(batch, taken(batch));
  }
  const BatchShape fresh = batch_of({12, 6, 5});
  const PredictedMemory predicted = regression.predict(fresh);
  EXPECT_NEAR(gb(predicted.likely), gb(taken(fresh)), 0.02 * gb(taken(fresh)));
  EXPECT_GE(predicted.at_most, taken(fresh));
}

// In batches of one mix samples, images and positions rise together. What cannot be told apart is put down to
// images and positions, so that another mix is predicted as well.
TEST(RegressionPredictor, LearnsFromBatchesOfOneMixWhatOthersTake) {
  RegressionPredictor regression{normal_quantile(0.99)};
  const auto taken = [](const BatchShape& batch) {
    return static_cast<Bytes>(30'000'000 * batch.images + 500'000 * batch.positions());
  };
  const auto of_length = [](std::array<int, 3> counts, std::int64_t tokens) {
    BatchShape batch = batch_of(counts);
    batch.longest = tokens;
    return batch;
  };
  for (int i = 0; i < 12; ++i) {
    const BatchShape batch = of_length({4 + i % 5, 3 + i % 4, 3 + i % 4}, 400 + 13 * i % 50);
    regression.learn(batch, taken(batch));
  }
  for (const BatchShape& other : {of_length({24, 0, 0}, 140), of_length({0, 0, 12}, 500)}) {
    EXPECT_NEAR(gb(regression.predict(other).likely), gb(taken(other)), 0.03 * gb(taken(other)));
  }
}

TEST(RegressionPredictor, SaysMoreWhereLittleWasSeen) {
  RegressionPredictor regression{normal_quantile(0.99)};
  const BatchShape batch = batch_of({4, 0, 0});
  const auto spread = [&] {
    const auto predicted = regression.predict(batch);
    return predicted.at_most - predicted.likely;
  };
  const Bytes before = spread();
  regression.learn(batch, 300'000'000);
  EXPECT_LT(spread(), before / 4);
}

TEST(RegressionPredictor, AFailureTeachesOnlyThatTheBatchNeedsMore) {
  RegressionPredictor regression{0};
  const BatchShape batch = batch_of({8, 0, 0});
  for (int i = 0; i < 10; ++i) regression.learn(batch, 1'000'000'000);
  const Bytes before = regression.predict(batch).likely;
  regression.learn_at_least(batch, 500'000'000);
  EXPECT_EQ(regression.predict(batch).likely, before);
  regression.learn_at_least(batch, 2'000'000'000);
  EXPECT_GT(regression.predict(batch).likely, before);
}

// 0.99 and 0.5 of the normal distribution (Abramowitz and Stegun, table 26.1).
TEST(RegressionPredictor, NormalQuantiles) {
  EXPECT_NEAR(normal_quantile(0.99), 2.3263, 0.0005);
  EXPECT_NEAR(normal_quantile(0.975), 1.9600, 0.0005);
  EXPECT_NEAR(normal_quantile(0.5), 0, 0.0005);
}

// Base 16, target 32 → 2; above 90 % one fewer, below 50 % one more, at most 8.
TEST(Accumulation, TheOriginalDrifts) {
  Accumulation steps{{AccumulationRule::Kind::adaptive, 16}, 32};
  EXPECT_EQ(steps.micro_steps(), 2);
  EXPECT_FALSE(steps.add(16, 0.95));
  EXPECT_TRUE(steps.add(16, 0.95));
  EXPECT_EQ(steps.micro_steps(), 1);
  for (int i = 0; i < 100; ++i) steps.add(16, 0.3);
  EXPECT_EQ(steps.micro_steps(), 8);
}

TEST(Accumulation, TheExactOneLeavesRoomForWhatIsMissing) {
  Accumulation steps{{AccumulationRule::Kind::exact, 16}, 32};
  EXPECT_FALSE(steps.add(20, 0.95));
  EXPECT_EQ(steps.room(), 12);
  EXPECT_TRUE(steps.add(12, 0.3));
  EXPECT_EQ(steps.room(), 32);
}

// Weight ∝ (mean norm / norm)^1.5, renormalised to the number of tasks.
TEST(LossWeights, BalanceGradientNorms) {
  const double norms[] = {1, 4, 4};
  const double mean = 3;
  const double raw[] = {std::pow(mean / 1, 1.5), std::pow(mean / 4, 1.5), std::pow(mean / 4, 1.5)};
  const double scale = 3 / (raw[0] + raw[1] + raw[2]);
  EXPECT_THAT(balanced_weights(norms, 1.5),
              ElementsAre(DoubleNear(raw[0] * scale, 1e-12), DoubleNear(raw[1] * scale, 1e-12),
                          DoubleNear(raw[2] * scale, 1e-12)));
  EXPECT_DOUBLE_EQ(learning_rate_scale(32, 8), 0.5);
  EXPECT_DOUBLE_EQ(gradient_scale(32, 8), 4);
}

// A mean over each micro-batch weighs the samples of small ones more; a division by the true count does not.
TEST(LossWeights, MeansOverMicroBatchesFavourTasksInSmallOnes) {
  GradientShares by_count{{1, 1, 1}};
  GradientShares by_mean{{1, 1, 1}};
  for (GradientShares* shares : {&by_count, &by_mean}) {
    shares->add(batch_of({12, 0, 0}));
    shares->add(batch_of({0, 0, 4}));
  }
  by_count.step(/*by_count=*/true);
  by_mean.step(/*by_count=*/false);
  EXPECT_THAT(by_count.shares(), ElementsAre(0.75, 0, 0.25));
  EXPECT_THAT(by_mean.shares(), ElementsAre(0.5, 0, 0.5));
}

// Bisection over 1 … 256.
TEST(Guardian, FindsTheSafeBatchSize) {
  EXPECT_EQ(safe_batch_size([](std::int64_t n) { return n <= 37; }), 37);
  EXPECT_EQ(safe_batch_size([](std::int64_t) { return true; }), 256);
  EXPECT_EQ(safe_batch_size([](std::int64_t) { return false; }), 0);
}

TEST(Candidates, ARestartKnowsWhatWaits) {
  Candidates whole{20, 5, 2, true};
  const auto looked = whole.look(8);
  const std::vector<SampleId> batch{looked[1], looked[4]};
  whole.take(batch);
  Candidates again{20, whole.position(), true};
  EXPECT_EQ(again.left(), 18u);
  const auto first = whole.look(100);
  const auto second = again.look(100);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin(), second.end()));
}

TEST(Candidates, NothingIsTakenTwice) {
  Candidates candidates{4, 1, 0, false};
  candidates.look(2);
  const SampleId twice[] = {0, 0};
  EXPECT_THROW(candidates.take(twice), InternalError);
  const SampleId unseen[] = {3};
  EXPECT_THROW(candidates.take(unseen), InternalError);
  EXPECT_EQ(candidates.left(), 4u);
}

TEST(Candidates, AStateOfAnotherDataSetIsRefused) {
  EXPECT_THROW((Candidates{4, EpochPosition{.seed = 1, .epoch = 0, .position = 5, .waiting = {}}, true}),
               InputError);
  EXPECT_THROW((Candidates{4, EpochPosition{.seed = 1, .epoch = 0, .position = 2, .waiting = {9}}, true}),
               InputError);
}

// A single sample over budget is emitted alone and flagged.
TEST(MemoryAwareSampler, ASampleOverBudgetGoesAlone) {
  const auto composer =
      builtin_policies()->composers.make({"memory-aware-sampler",
                                          "table",
                                          {{"guardian", false, {}}, {"max_memory_mb", std::int64_t{800}, {}}},
                                          ""},
                                         kTasks);
  const std::vector<Sample> samples(3, Sample{.images = 1, .length = 51, .tokens = 100});
  Candidates candidates{3, 1, 0, false};
  const auto answer = composer->decide({.samples = samples, .candidates = candidates, .most = 16},
                                       {.memory = {.total = 8_GiB}});
  EXPECT_THAT(answer.batch, ElementsAre(0u));
  EXPECT_TRUE(answer.oversize);
}

// With the published weights the rarer task of a batch comes next.
TEST(MemoryAwareSampler, DiversityPrefersTheTaskThatIsRare) {
  const auto composer = builtin_policies()->composers.make(
      {"memory-aware-sampler", "table", {{"batch_size", std::int64_t{4}, {}}}, ""}, kTasks);
  std::vector<Sample> samples(6, Sample{.images = 1, .length = 51, .tokens = 100});
  samples[4] = {1, 3, 51, 198};
  samples[5] = {2, 4, 51, 247};
  Candidates candidates{6, 1, 0, false};
  const auto answer = composer->decide({.samples = samples, .candidates = candidates, .most = 16},
                                       {.memory = {.total = 64_GiB}});
  EXPECT_THAT(answer.batch, ElementsAre(0u, 4u, 5u, 1u));
}

/// What a composer answers to `samples`, of which at most `most` may be taken, on a card of `total` bytes.
ComposerAnswer answer_of(Composer& composer, const std::vector<Sample>& samples, std::optional<Bytes> budget,
                         Bytes total = 64_GiB, std::int64_t most = 16) {
  Candidates candidates{samples.size(), 1, 0, false};
  return composer.decide({.samples = samples, .candidates = candidates, .most = most, .budget = budget},
                         {.memory = {.total = total}});
}

std::unique_ptr<Composer> unguarded(const std::string& use, const std::string& profile,
                                    const OptionMap& more) {
  return builtin_policies()->composers.make({use, profile, overlay(more, {{"guardian", false, {}}}), ""},
                                            kTasks);
}

const std::vector<Sample> kAlike(8, Sample{.images = 1, .length = 51, .tokens = 100});

Bytes published(int samples) {
  return TablePredictor{kTasks, TablePredictor::Form::sum}.predict(batch_of({samples, 0, 0})).at_most;
}

TEST(MemoryAwareSampler, ABatchMayTakeTheWholeBudget) {
  const auto composer = unguarded("memory-aware-sampler", "table", {});
  const auto at = [&](Bytes budget) { return answer_of(*composer, kAlike, budget); };
  EXPECT_EQ(at(published(2)).batch.size(), 2u);
  EXPECT_EQ(at(published(2) - 1).batch.size(), 1u);
  EXPECT_FALSE(at(published(1)).oversize);
  EXPECT_TRUE(at(published(1) - 1).oversize);
}

TEST(MemoryAwareSampler, ABatchGrowsByAFactorFromTheLargestThatRan) {
  const auto composer = unguarded("memory-aware-sampler", "table", {{"growth", 2.0, {}}});
  const BatchShape three = batch_of({3, 0, 0});
  composer->told({.batch = {}, .shape = three});
  EXPECT_EQ(answer_of(*composer, kAlike, std::nullopt).batch.size(), 6u);
}

// Of five samples over what the card may give, three come first: the larger half.
TEST(Guardian, CutsWhatIsPredictedOverMemoryAndFlagsOnlyWhatCannotBeCut) {
  const auto composer = builtin_policies()->composers.make(
      {"memory-aware-sampler", "table", {{"over_budget", "minus-one", {}}}, ""}, kTasks);
  EXPECT_EQ(answer_of(*composer, kAlike, std::nullopt, published(5), 5).action,
            ComposerAnswer::Action::clean_up);
  const ComposerAnswer cut = answer_of(*composer, kAlike, std::nullopt, published(5), 5);
  EXPECT_EQ(cut.batch.size(), 3u);
  EXPECT_FALSE(cut.oversize);
  const auto another = builtin_policies()->composers.make({"memory-aware-sampler", "table", {}, ""}, kTasks);
  const ComposerAnswer one = answer_of(*another, kAlike, std::nullopt, 64_GiB, 1);
  EXPECT_EQ(one.batch.size(), 1u);
  EXPECT_FALSE(one.oversize);
}

// Rows of 512 tokens cost 512 · 512 each; max_tokens · 512 is the limit, which may be reached. Of equal
// lengths the older comes first.
TEST(PlannedBatches, MayReachTheirLimitAndKeepTheOrderOfEqualLengths) {
  const std::vector<Sample> rows(4, Sample{.images = 0, .length = 512, .tokens = 512});
  const OptionMap two{{"max_tokens", std::int64_t{1024}, {}}};
  EXPECT_EQ(answer_of(*unguarded("planned-batches", "quadratic", two), rows, std::nullopt).batch.size(), 2u);
  const auto sorted = unguarded("planned-batches", "longest-first", two);
  EXPECT_THAT(answer_of(*sorted, rows, std::nullopt).batch, ElementsAre(0u, 1u));
  // What is planned is handed out whole where it just fits.
  EXPECT_EQ(answer_of(*sorted, rows, std::nullopt, 64_GiB, 2).batch.size(), 2u);
  EXPECT_EQ(answer_of(*sorted, rows, std::nullopt).batch.size(), 2u);  // and nothing of it is left
}

// Before anything was seen likely is 0 and the spread is d · 0.05 · sqrt(1 + v); an error e then leaves
// e² / (1 + v).
TEST(RegressionPredictor, WhatALargeSpreadAllowsIsLittleNoise) {
  RegressionPredictor regression{1};
  const BatchShape batch = batch_of({1, 0, 0});
  const double spread = gb(regression.predict(batch).at_most);
  ASSERT_EQ(regression.predict(batch).likely, 0u);
  const double whole = std::pow(spread / 0.05, 2);  // 1 + v
  // The shares of the seven features, squared: 0.5, 0.5 / 16, 10 / 16, 10 · 100 / 8192, 0.5 · 100 / 8192 ·
  // 100 / 512, 0.5 · 100 / 512, none; over 0.05².
  EXPECT_NEAR(whole, 1 + 266.42, 0.05);
  regression.learn(batch, 3 * Bytes{1_GiB});
  const auto state = regression.save();
  EXPECT_NEAR(state[state.size() - 2], 9 / whole, 1e-6);
}

TEST(ComposerRegistry, EveryProfileOfEveryComposerCanBeMadeAndTakesItsOwnState) {
  for (const ComposerEntry& entry : builtin_policies()->composers) {
    for (const PolicyProfile& profile : entry.profiles) {
      const auto composer = builtin_policies()->composers.make({entry.name, profile.name, {}, ""}, kTasks);
      const auto state = composer->save();
      composer->restore(state);
      EXPECT_EQ(composer->save(), state) << entry.name << " " << profile.name;
      EXPECT_THROW(composer->restore(std::vector<double>{-1}), InputError);
    }
  }
}

}  // namespace
}  // namespace vramlab
