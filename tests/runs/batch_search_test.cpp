// Searches with real steps: the reported cases K2 that are about memory (spec, cases.md).
#include <gmock/gmock.h>

#include "models/linear.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/runs/batch_search_loop.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Action = SearcherAnswer::Action;

LinearWorkload line(Bytes fixed, Bytes per_sample, Bytes resident = 0, Bytes state = 0) {
  return LinearWorkload{{.name = "line",
                         .fixed = fixed,
                         .per_sample = per_sample,
                         .resident = resident,
                         .state = state,
                         .batch = {"batch", 1, 4096},
                         .time = {.floor_seconds = 0.1}}};
}

ProcessSetup card(Bytes limit) {
  return {.card_total = 96_GiB, .context_bytes = 0, .allocator = {.settings = {}, .limit = limit}};
}

BatchSearchSetup search_of(const WorkloadModel& model, std::vector<ProcessSetup> cards) {
  return {.model = &model,
          .parameter = 0,
          .low = 1,
          .high = 4096,
          .phases = {{.name = "training", .point = {1}}},
          .cards = std::move(cards)};
}

BatchSearchRun run(const BatchSearchSetup& setup, const std::string& use, OptionMap options = {},
                   const std::string& profile = {}) {
  const auto searcher = builtin_policies()->searchers.make(
      {.use = use, .profile = profile, .options = std::move(options), .where = {}});
  return run_batch_search(setup, *searcher);
}

std::vector<std::int64_t> tried(const BatchSearchRun& run) {
  std::vector<std::int64_t> sizes;
  for (const SearchTrial& trial : run.trials) sizes.push_back(trial.probe.batch);
  return sizes;
}

const OptionMap kWhole{{"safety_margin", 1.0, {}}, {"reduction", 1.0, {}}};

// K2-09: memory 500 + 300 B in training and 500 + 60 B in validation, cap 8,000 MiB.
class TwoPhases : public testing::Test {
 protected:
  LinearWorkload training = line(500_MiB, 300_MiB);
  LinearWorkload validation = line(500_MiB, 60_MiB);
  BatchSearchSetup setup = [this] {
    BatchSearchSetup s = search_of(training, {card(8000_MiB)});
    s.phases.push_back({.name = "validation", .point = {1}, .model = &validation});
    return s;
  }();
};

TEST_F(TwoPhases, TheMinimumOverPhasesIsFound) {
  const BatchSearchRun power = run(setup, "power", kWhole);
  EXPECT_EQ(power.answer.batch, 16);
  EXPECT_EQ(run(setup, "binsearch", kWhole).answer.batch, 25);
  EXPECT_EQ(largest_batch(setup), 25);
  const SearchTrial& last = power.trials.back();  // 32: fails in training, validation is not reached
  EXPECT_EQ(last.probe.outcome, ProbeOutcome::oom);
  EXPECT_EQ(last.probe.phase, "training");
  EXPECT_THAT(last.steps, ElementsAre(1, 0));
  EXPECT_THAT(power.trials.front().steps, ElementsAre(2, 2));
  EXPECT_EQ(power.trials.front().probe.phase, "training");  // the fuller one
}

TEST_F(TwoPhases, ValidationAloneWouldAnswer64) {
  std::swap(setup.phases[0], setup.phases[1]);
  const OptionMap first_only = overlay(kWhole, {{"all_phases", false, {}}});
  EXPECT_EQ(run(setup, "power", first_only).answer.batch, 64);
  EXPECT_EQ(run(setup, "binsearch", first_only).answer.batch, 125);
}

// K2-10: VGG-16, P = 138,357,544 × 4 B; 2P + activations in iteration 1, then 3P (SGD) or 4P (Adam).
TEST(BatchSearch, OptimizerStateComesAfterTheFirstStep) {
  constexpr Bytes kP = Bytes{138'357'544} * 4;
  const LinearWorkload sgd = line(2 * kP, 800_MiB, kP, kP);
  const LinearWorkload adam = line(2 * kP, 800_MiB, kP, 2 * kP);
  const BatchSearchSetup with_sgd = search_of(sgd, {card(8192_MiB)});
  const BatchSearchSetup with_adam = search_of(adam, {card(8192_MiB)});
  const SearchTrial trial = probe_batch(with_sgd, 8, {2, true});
  EXPECT_EQ(trial.probe.outcome, ProbeOutcome::ok);
  // To 2 MiB a tensor: 7,983.4 MiB.
  EXPECT_NEAR(static_cast<double>(trial.probe.cards[0].peak) / (1 << 20), 7983.4, 3);
  EXPECT_NEAR(static_cast<double>(probe_batch(with_sgd, 8, {1, true}).probe.cards[0].peak) / (1 << 20),
              7455.6, 3);
  EXPECT_EQ(probe_batch(with_adam, 8, {1, true}).probe.outcome, ProbeOutcome::ok);
  const SearchTrial fails = probe_batch(with_adam, 8, {2, true});
  EXPECT_EQ(fails.probe.outcome, ProbeOutcome::oom);
  EXPECT_THAT(fails.steps, ElementsAre(2));
  EXPECT_EQ(run(with_adam, "binsearch", kWhole).answer.batch, 7);
  EXPECT_EQ(run(with_adam, "power", kWhole).answer.batch, 4);
  // With one step the finder is a sample too far.
  EXPECT_EQ(run(with_adam, "binsearch", overlay(kWhole, {{"steps", std::int64_t{1}, {}}})).answer.batch, 8);
}

// K2-11: baseline 1 GiB, cap 8 GiB, 0.5 GiB a sample; a trial of 32 fails and its 7 GiB stay referenced.
class HeldTensors : public testing::Test {
 protected:
  LinearWorkload model = line(1_GiB, 512_MiB, 1_GiB);
  BatchSearchSetup setup = search_of(model, {card(8_GiB)});
  OptionMap from_32{{"init", std::int64_t{32}, {}}};
};

TEST_F(HeldTensors, CleanUpFreesThem) {
  setup.failed_tensors = FailedTensors::until_clean_up;
  const BatchSearchRun found = run(setup, "doubling-bisect", from_32);
  EXPECT_EQ(found.answer.batch, 14);
  EXPECT_EQ(found.trials.front().probe.outcome, ProbeOutcome::oom);
  EXPECT_EQ(found.trials.front().probe.cards[0].current, 8_GiB);  // before the clean-up
}

TEST_F(HeldTensors, HeldForGoodEndTheSearch) {
  setup.failed_tensors = FailedTensors::never;
  const BatchSearchRun held = run(setup, "doubling-bisect", from_32);
  EXPECT_THAT(tried(held), ElementsAre(32));
  EXPECT_EQ(held.answer.action, Action::give_up);
  EXPECT_THAT(held.answer.reason, HasSubstr("trial memory still held"));
  EXPECT_THAT(held.answer.reason, HasSubstr("7.0 GiB"));
  EXPECT_EQ(held.trials.front().probe.outcome, ProbeOutcome::held);
}

// K2-13: 4 ranks, caps 80 / 50 / 80 / 80 GiB, 10 + 2 B GiB on each.
TEST(BatchSearch, AllRanksSeeTheFailureOfOne) {
  const LinearWorkload model = line(10_GiB, 2_GiB);
  const BatchSearchSetup ranks = search_of(model, {card(80_GiB), card(50_GiB), card(80_GiB), card(80_GiB)});
  EXPECT_EQ(run(ranks, "binsearch", kWhole).answer.batch, 20);
  EXPECT_EQ(run(ranks, "doubling-bisect").answer.batch, 20);
  EXPECT_EQ(run(search_of(model, {card(80_GiB)}), "binsearch", kWhole).answer.batch, 35);
  const SearchTrial trial = probe_batch(ranks, 21, {2, true});
  EXPECT_EQ(trial.probe.outcome, ProbeOutcome::oom);
  EXPECT_EQ(trial.probe.cards.size(), 4U);
}

// K2-15: launches fail from 65,536 on, and that is not a lack of memory.
TEST(BatchSearch, LaunchLimitIsNoMemory) {
  const LinearWorkload model{{.name = "line",
                              .fixed = 100_MiB,
                              .per_sample = 12_MiB,
                              .batch = {"batch", 1, 100000},
                              .time = {.floor_seconds = 0.001}}};
  BatchSearchSetup setup =
      search_of(model, {{.card_total = Bytes{1} << 50, .context_bytes = 0, .allocator = {}}});
  setup.high = 100;
  setup.failure = {.from = 65, .message = "CUDA error: invalid configuration argument"};
  const OptionMap from_2 = overlay(kWhole, {{"init", std::int64_t{2}, {}}});
  const BatchSearchRun stopped = run(setup, "power", from_2);
  EXPECT_EQ(stopped.answer.action, Action::give_up);
  EXPECT_EQ(stopped.answer.reason, "CUDA error: invalid configuration argument");
  EXPECT_EQ(run(setup, "power", from_2, "faithful").answer.batch, 64);
  setup.high = 64;  // max_batch
  EXPECT_EQ(run(setup, "power", from_2).answer.batch, 64);
}

// A kernel that cannot be launched at some sizes says nothing of larger ones.
TEST(BatchSearch, FailuresMayLieInARange) {
  const LinearWorkload model = line(100_MiB, 12_MiB);
  BatchSearchSetup setup = search_of(model, {card(80_GiB)});
  setup.failure = {.from = 33, .to = 40, .message = "CUDA error: invalid configuration argument"};
  EXPECT_EQ(probe_batch(setup, 32).probe.outcome, ProbeOutcome::ok);
  EXPECT_EQ(probe_batch(setup, 33).probe.outcome, ProbeOutcome::failed);
  EXPECT_EQ(probe_batch(setup, 40).probe.error, "CUDA error: invalid configuration argument");
  EXPECT_EQ(probe_batch(setup, 41).probe.outcome, ProbeOutcome::ok);
}

// 1 GiB + 512 MiB a sample of 8 GiB: 14 samples need all of it, 12 need seven eighths.
TEST(BatchSearch, AProbeMayBeGivenAShareOfTheMemory) {
  const LinearWorkload model = line(1_GiB, 512_MiB);
  const BatchSearchSetup setup = search_of(model, {card(8_GiB)});
  EXPECT_EQ(probe_batch(setup, 14).probe.outcome, ProbeOutcome::ok);
  EXPECT_EQ(probe_batch(setup, 13, {.share = 0.875}).probe.outcome, ProbeOutcome::oom);
  EXPECT_EQ(probe_batch(setup, 12, {.share = 0.875}).probe.outcome, ProbeOutcome::ok);
}

// Three starts of five steps with drawn batches, then two steps at the probe's own.
TEST(BatchSearch, ShapesVaryWithinAProbe) {
  const LinearWorkload model = line(1_GiB, 512_MiB);
  BatchSearchSetup setup = search_of(model, {card(8_GiB)});
  const ProbeDepth depth{.varied_steps = 5, .varied_starts = 3};
  EXPECT_THAT(probe_batch(setup, 4, depth).steps, ElementsAre(2));  // nothing varies
  setup.draws = {{0, 1, 14}};
  EXPECT_THAT(probe_batch(setup, 4, depth).steps, ElementsAre(17));
}

// A validation of 64 needs 2 + 64 GiB of 16 and runs in a process of its own: it fails each time.
TEST(SearchEpoch, RunsPhasesWithAModelOfTheirOwn) {
  const LinearWorkload training = line(1_GiB, 100_MiB);
  const LinearWorkload validation = line(2_GiB, 1_GiB);
  BatchSearchSetup setup = search_of(training, {card(16_GiB)});
  setup.phases.push_back({.name = "validation", .point = {1}, .model = &validation});
  SearchEpochSetup epoch{
      .iterations = 20, .phases_every = 5, .seed = 1, .buckets = {{.point = {64}, .draws = {}}}};
  SearchEpochRun run = run_search_epoch(setup, epoch);
  EXPECT_EQ(run.ooms, 4);
  EXPECT_EQ(run.phase_ooms, 4);
  epoch.buckets[0].point = {14};
  run = run_search_epoch(setup, epoch);
  EXPECT_EQ(run.ooms, 0);
  EXPECT_EQ(run.peak_share, 1);  // 2 + 14 GiB
}

// K2-05
TEST(BatchSearch, BothMessagesOfMemoryAreMemory) {
  EXPECT_TRUE(is_out_of_memory("CUDA out of memory. Tried to allocate 20.00 MiB"));
  EXPECT_TRUE(is_out_of_memory("CUDA error: out of memory"));
  EXPECT_FALSE(is_out_of_memory("ValueError: batch size must be divisible by 4"));
  const LinearWorkload model = line(100_MiB, 12_MiB);
  BatchSearchSetup setup = search_of(model, {card(80_GiB)});
  setup.failure = {.from = 10, .message = "CUDA error: out of memory"};
  EXPECT_EQ(run(setup, "binsearch", kWhole).answer.batch, 9);
  setup.failure->message = "ValueError: shapes do not match";
  const BatchSearchRun stopped = run(setup, "back-off");
  EXPECT_THAT(tried(stopped), ElementsAre(128));
  EXPECT_EQ(stopped.answer.reason, "ValueError: shapes do not match");
}

// Memory is as before on every exit: each probe of a size finds the same.
TEST(BatchSearch, AProbeLeavesNothingBehind) {
  const LinearWorkload model = line(1_GiB, 512_MiB, 256_MiB, 512_MiB);
  const BatchSearchSetup setup = search_of(model, {card(8_GiB)});
  const BatchSearchRun result = run(setup, "binsearch", kWhole);
  for (const SearchTrial& trial : result.trials) {
    EXPECT_EQ(trial.probe.cards[0].start, 256_MiB) << trial.probe.batch;
    EXPECT_EQ(trial.probe.cards[0].free, 8_GiB - 256_MiB) << trial.probe.batch;
  }
  EXPECT_GT(result.ooms, 0);
  EXPECT_EQ(result.answer.batch, largest_batch(setup));
}

TEST(BatchSearch, NothingFits) {
  const LinearWorkload model = line(2_GiB, 2_GiB);
  const BatchSearchRun result = run(search_of(model, {card(3_GiB)}), "model");
  EXPECT_EQ(result.answer.action, Action::none_fits);
  EXPECT_THAT(result.answer.reason, HasSubstr("batch 1 does not fit"));
  EXPECT_EQ(largest_batch(search_of(model, {card(3_GiB)})), 0);
}

TEST(SearchEpoch, CountsFailuresAndEndsAfterTenInARow) {
  const LinearWorkload model = line(1_GiB, 512_MiB);
  const BatchSearchSetup setup = search_of(model, {card(8_GiB)});
  SearchEpochSetup epoch{
      .iterations = 50, .phases_every = 0, .seed = 1, .buckets = {{.point = {14}, .draws = {}}}};
  const SearchEpochRun fits = run_search_epoch(setup, epoch);
  EXPECT_EQ(fits.ooms, 0);
  EXPECT_EQ(fits.iterations, 50);
  EXPECT_EQ(fits.samples, 700);
  EXPECT_EQ(fits.peak_share, 1.0);
  epoch.buckets[0].point = {15};
  const SearchEpochRun fails = run_search_epoch(setup, epoch);
  EXPECT_EQ(fails.ooms, 10);
  EXPECT_EQ(fails.iterations, 10);
  // A batch drawn anew each step: some steps fail, not all.
  epoch.buckets[0].draws = {{0, 10, 18}};
  const SearchEpochRun mixed = run_search_epoch(setup, epoch);
  EXPECT_GT(mixed.ooms, 0);
  EXPECT_GT(mixed.samples, 0);
}

/// Keeps what it was shown.
class Watching : public Tuner {
 public:
  explicit Watching(std::vector<Observation>& seen) : seen_(seen) {}
  TunerAnswer decide(const TunerQuestion&, const Observation& observation) override {
    seen_.push_back(observation);
    return {};
  }

 private:
  std::vector<Observation>& seen_;
};

// A copy on each of two cards, one of which has half the memory.
TEST(TrainingOnTwoCards, TunersSeeTheFullestOrTheSum) {
  const LinearWorkload model = line(1_GiB, 512_MiB);
  TrainingSetup setup;
  setup.model = &model;
  setup.bounds = model.parameters();
  setup.start = {6};
  setup.iterations = 3;
  setup.process = card(16_GiB);
  setup.more_cards = {card(8_GiB)};
  std::vector<Observation> fullest;
  run_training(setup, [&] { return std::make_unique<Watching>(fullest); });
  ASSERT_EQ(fullest.size(), 3U);
  EXPECT_EQ(fullest[0].memory.total, 8_GiB);
  EXPECT_EQ(fullest[0].memory.peak_allocated, 4_GiB);
  ASSERT_EQ(fullest[0].cards.size(), 2U);
  EXPECT_EQ(fullest[0].cards[0].total, 16_GiB);
  std::vector<Observation> summed;
  run_training(
      setup, [&] { return std::make_unique<Watching>(summed); }, CardsRule::sum);
  EXPECT_EQ(summed[0].memory.total, 24_GiB);
  EXPECT_EQ(summed[0].memory.peak_allocated, 8_GiB);

  setup.start = {15};  // too much for the second card only
  const TrainingRun failed = run_training(setup, [&] { return std::make_unique<Watching>(summed); });
  EXPECT_EQ(failed.iterations[0].result, StepResult::oom);
  EXPECT_EQ(failed.iterations[0].memory.total, 8_GiB);
}

TEST(CardRunner, RefusesAModelForOtherCards) {
  const LinearWorkload model = line(1_GiB, 512_MiB);
  EXPECT_THROW(CardRunner(model, {}), InputError);
}

}  // namespace
}  // namespace vramlab
