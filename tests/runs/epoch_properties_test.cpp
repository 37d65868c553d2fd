// What holds for every composer: no sample is lost or doubled in any order of OOMs and restarts, effective
// batches are exact, no batch is predicted over budget.
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runs/epoch_rig.hpp"

namespace vramlab {
namespace {

struct Choice {
  std::string use;
  std::string profile;
  OptionMap options;
};

const std::vector<Choice>& choices() {
  static const OptionMap guarded{{"guardian", true, {}}, {"halvings", std::int64_t{20}, {}}};
  static const std::vector<Choice> all{
      {"memory-aware-sampler", "dense", guarded},
      {"memory-aware-sampler", "mixed", guarded},
      {"memory-aware-sampler", "table", guarded},
      {"planned-batches", "fixed", guarded},
      {"planned-batches", "constant-token", overlay(guarded, {{"max_tokens", std::int64_t{300}, {}}})},
      {"planned-batches", "length-bucketed", overlay(guarded, {{"max_tokens", std::int64_t{300}, {}}})},
      {"planned-batches", "longest-first", overlay(guarded, {{"max_tokens", std::int64_t{300}, {}}})},
  };
  return all;
}

/// Three tasks of one, three and four images, 4 MiB an image and 1 MiB a position.
const SampleSizeModel& model() {
  static const SampleSizeModel sizes{
      {.resident = 64_MiB, .by_images = {0, 4_MiB, 8_MiB, 12_MiB, 16_MiB}, .per_token = 1_MiB}};
  return sizes;
}

std::vector<Sample> any_samples() {
  std::vector<Sample> samples;
  const auto count = *rc::gen::inRange<std::size_t>(1, 60);
  for (std::size_t i = 0; i < count; ++i) {
    const auto task = *rc::gen::inRange<std::uint32_t>(0, 3);
    const auto length = *rc::gen::inRange<std::int64_t>(1, 100);
    samples.push_back({task, task == 0 ? 1 : static_cast<std::int32_t>(task + 2), length, length});
  }
  return samples;
}

EpochSetup any_setup() {
  EpochSetup setup;
  setup.model = &model();
  setup.tasks = {"T1", "T2", "T3"};
  setup.samples = any_samples();
  setup.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  setup.epochs = *rc::gen::inRange<std::int64_t>(1, 4);
  setup.target_batch = *rc::gen::inRange<std::int64_t>(1, 40);
  setup.loss.weights = {1, 1, 1};
  // one sample of the largest make always fits, more may not
  setup.process = {.card_total = 64_MiB + 128_MiB + *rc::gen::inRange<Bytes>(0, 600) * 1_MiB,
                   .context_bytes = 0};
  return setup;
}

std::unique_ptr<Composer> make(const Choice& choice) {
  return builtin_policies()->composers.make({choice.use, choice.profile, choice.options, ""},
                                            {"T1", "T2", "T3"});
}

RC_GTEST_PROP(EpochProperties, EverySampleIsTrainedOnOnceAnEpochWhateverFailsAndHoweverOftenItRestarts, ()) {
  const Choice& choice = choices()[*rc::gen::inRange<std::size_t>(0, choices().size())];
  RC_LOG() << choice.use << " " << choice.profile << "\n";
  EpochSetup setup = any_setup();
  KeptBatches kept;
  setup.listener = &kept;
  std::int64_t steps = 0;
  for (;;) {
    setup.stop_after = *rc::gen::inRange<std::int64_t>(1, 40);
    const auto composer = make(choice);
    const EpochRun run = run_epochs(setup, *composer);
    RC_ASSERT(run.ended_early == "");
    RC_ASSERT(run.totals.skipped == 0);
    steps += run.totals.steps;
    const bool over = run.state.position.epoch + 1 >= setup.epochs && run.state.position.waiting.empty() &&
                      run.state.position.position == setup.samples.size();
    RC_ASSERT(run.complete == over);
    setup.start = run.state;
    if (over) break;
  }
  RC_CLASSIFY(!kept.sizes(StepResult::oom).empty(), "with OOMs");
  std::map<std::pair<std::int64_t, SampleId>, int> times;
  for (const auto& batch : kept.batches) {
    if (batch.result == StepResult::oom) continue;
    for (const SampleId id : batch.samples) ++times[{batch.epoch, id}];
  }
  RC_ASSERT(times.size() == setup.samples.size() * static_cast<std::size_t>(setup.epochs));
  for (const auto& [sample, count] : times) RC_ASSERT(count == 1);

  // an epoch's totals are those of the whole epoch, however many processes it took
  RC_ASSERT(kept.epochs.size() == static_cast<std::size_t>(setup.epochs));
  for (const EpochTotals& epoch : kept.epochs) {
    RC_ASSERT(epoch.samples == static_cast<std::int64_t>(setup.samples.size()));
  }

  // the last step of an epoch takes what is left, every other one exactly the target
  const auto samples = static_cast<std::int64_t>(setup.samples.size());
  RC_ASSERT(steps == setup.epochs * ((samples + setup.target_batch - 1) / setup.target_batch));
  for (const auto& batch : kept.batches)
    RC_ASSERT(batch.effective == 0 || batch.effective == setup.target_batch);
}

RC_GTEST_PROP(EpochProperties, NoBatchIsPredictedOverBudget, ()) {
  const Choice& choice = choices()[*rc::gen::inRange<std::size_t>(0, 3)];
  EpochSetup setup = any_setup();
  KeptBatches kept;
  setup.listener = &kept;
  run_epochs(setup, *make(choice));
  const auto budget = static_cast<double>(setup.process.card_total) * 0.9 - static_cast<double>(64_MiB);
  for (const auto& batch : kept.batches) {
    const bool within = static_cast<double>(batch.predicted.at_most) <= budget;
    RC_ASSERT(within || (batch.oversize && batch.samples.size() == 1));
  }
}

RC_GTEST_PROP(EpochProperties, ARestartContinuesTheSameOrder, ()) {
  EpochSetup setup = any_setup();
  setup.process.card_total = 1_GiB * 1024;  // nothing fails: the order alone is looked at
  const Choice& choice = choices()[*rc::gen::inRange<std::size_t>(3, choices().size())];
  KeptBatches whole;
  setup.listener = &whole;
  run_epochs(setup, *make(choice));

  KeptBatches parts;
  setup.listener = &parts;
  setup.stop_after = *rc::gen::inRange<std::int64_t>(1, static_cast<std::int64_t>(whole.batches.size()) + 1);
  setup.start = run_epochs(setup, *make(choice)).state;
  setup.stop_after = 0;
  run_epochs(setup, *make(choice));
  RC_ASSERT(parts.batches.size() == whole.batches.size());
  for (std::size_t i = 0; i < whole.batches.size(); ++i) {
    RC_ASSERT(parts.batches[i].samples == whole.batches[i].samples);
    RC_ASSERT(parts.batches[i].epoch == whole.batches[i].epoch);
  }
}

}  // namespace
}  // namespace vramlab
