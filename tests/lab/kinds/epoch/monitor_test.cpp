// The monitor of an epoch over epochs small enough to work out by hand.
#include "lab/kinds/epoch/monitor.hpp"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/json.hpp"
#include "models/linear.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  return text.str();
}

Json json_of(const std::filesystem::path& file) { return Json::parse(text_of(file)); }

/// Two tasks on a card of `total`: weights of 128 MiB, 1 MiB a position of a padded row, 50 ms a step.
EpochScenario scenario_of(const std::vector<Sample>& samples, Bytes total, const PolicyEntry& policy) {
  EpochScenario scenario;
  scenario.name = "tiny";
  scenario.gpu = "a card";
  scenario.model = std::make_shared<const SampleSizeModel>(
      SampleSizes{.resident = 128_MiB, .per_token = 1_MiB, .floor_seconds = 0.05});
  scenario.setup.model = scenario.model.get();
  scenario.setup.tasks = {"T1", "T2"};
  scenario.setup.samples = samples;
  scenario.setup.shuffle = false;
  scenario.setup.target_batch = 2;
  scenario.setup.process = {.card_total = total, .context_bytes = 0};
  scenario.setup.process.allocator.limit = total;
  scenario.setup.loss.weights = {1, 2};
  scenario.policies = {policy};
  return scenario;
}

const std::vector<Sample> kFive{
    {0, 0, 64, 64}, {0, 0, 64, 64}, {1, 0, 128, 128}, {1, 0, 512, 512}, {1, 0, 96, 96}};
const PolicyEntry kFixed{"fixed",
                         {"planned-batches", "fixed", {{"batch_size", std::int64_t{2}, {}}}, "/policies/0"}};
const PolicyEntry kTable{
    "table", {"memory-aware-sampler", "table", {{"batch_size", std::int64_t{2}, {}}}, "/policies/0"}};

/// A run with the monitor in `folder`; what it wrote.
std::vector<std::string> monitored(const EpochScenario& scenario, const ScratchFolder& folder) {
  const PolicyEntry& entry = scenario.policies.front();
  EpochMonitor monitor{scenario, entry.label, folder.path() / "run"};
  const EpochResult result = run_composer(scenario, entry, &monitor);
  return monitor.finish(result);
}

/// The five samples on 1 GiB: the second batch wants 2 · 512 MiB beside the weights, fails and is left out.
EpochScenario failing() { return scenario_of(kFive, 1_GiB, kFixed); }

/// The same, with declared figures for two batches.
EpochScenario declared() {
  EpochScenario scenario = failing();
  scenario.setup.losses.by_task = {{1.5, 1.25}, {3, 2.5}};
  scenario.setup.gradient_norms.by_task = {{1, 1}, {4, 2}};
  scenario.series_origin = "synthetic";
  return scenario;
}

/// The batches without their times, which are checked here: a step takes 50 ms and the driver's time, a
/// failed one the share that it did, and the next begins where one ends.
Json timeless_batches(const std::filesystem::path& file) {
  Json batches = json_of(file);
  double now = 0;
  for (Json& batch : batches) {
    EXPECT_NEAR(batch["timestamp"].get<double>(), now, 1e-12);
    now += batch["duration_ms"].get<double>() / 1000;
    const double most = batch["oom"].get<bool>() ? 50 : 50.1;
    EXPECT_LE(batch["duration_ms"].get<double>(), most);
    batch.erase("timestamp");
    batch.erase("duration_ms");
  }
  return batches;
}

TEST(EpochMonitor, WritesEveryBatchAsItRanAndMakesNoLossUp) {
  const ScratchFolder folder;
  monitored(failing(), folder);
  EXPECT_EQ(timeless_batches(folder.path() / "run/batch_metrics.json"), Json::parse(R"([
    {"batch_idx": 0, "epoch": 0, "task_types": ["T1"], "task_counts": {"T1": 2}, "batch_size": 2,
     "memory_allocated_mb": 256, "memory_reserved_mb": 256, "predicted_mb": null, "prediction_error": null,
     "padding": 0, "oom": false, "oversize": false, "checkpointing": false, "optimizer_step": true,
     "effective_batch": 2, "learning_rate_scale": 1, "loss": null, "per_task_loss": null,
     "per_task_gradient_norm": null, "loss_origin": null},
    {"batch_idx": 1, "epoch": 0, "task_types": ["T2"], "task_counts": {"T2": 2}, "batch_size": 2,
     "memory_allocated_mb": 640, "memory_reserved_mb": 768, "predicted_mb": null, "prediction_error": null,
     "padding": 0.375, "oom": true, "oversize": false, "checkpointing": false, "optimizer_step": false,
     "effective_batch": null, "learning_rate_scale": 1, "loss": null, "per_task_loss": null,
     "per_task_gradient_norm": null, "loss_origin": null},
    {"batch_idx": 2, "epoch": 0, "task_types": ["T2"], "task_counts": {"T2": 1}, "batch_size": 1,
     "memory_allocated_mb": 224, "memory_reserved_mb": 640, "predicted_mb": null, "prediction_error": null,
     "padding": 0, "oom": false, "oversize": false, "checkpointing": false, "optimizer_step": false,
     "effective_batch": null, "learning_rate_scale": 1, "loss": null, "per_task_loss": null,
     "per_task_gradient_norm": null, "loss_origin": null}])"));
  EXPECT_TRUE(json_of(folder.path() / "run/training_report.json")["loss_origin"].is_null());
}

// The losses of tasks are weighted 1 and 2. A batch that failed came to no loss, declared or not.
TEST(EpochMonitor, WritesDeclaredFiguresWithTheirOrigin) {
  const ScratchFolder folder;
  monitored(declared(), folder);
  const Json batches = json_of(folder.path() / "run/batch_metrics.json");
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[0]["loss"], 1.5);
  EXPECT_EQ(batches[0]["per_task_loss"], Json::parse(R"({"T1": 1.5})"));
  EXPECT_EQ(batches[0]["per_task_gradient_norm"], Json::parse(R"({"T1": 1})"));
  for (const char* key : {"loss", "per_task_loss", "per_task_gradient_norm"}) {
    EXPECT_TRUE(batches[1][key].is_null()) << key;
  }
  EXPECT_EQ(batches[2]["loss"], 2 * 2.5);
  EXPECT_EQ(batches[2]["per_task_loss"], Json::parse(R"({"T2": 2.5})"));
  EXPECT_EQ(batches[2]["per_task_gradient_norm"], Json::parse(R"({"T2": 2})"));
  for (const Json& batch : batches) EXPECT_EQ(batch["loss_origin"], "synthetic");
  EXPECT_EQ(json_of(folder.path() / "run/training_report.json")["loss_origin"], "synthetic");
}

// The published table: 0.15 + 0.12 + 0.63 · (1 + 1.85) GB for a batch of T1 and T2; it takes 2 · 96 MiB.
TEST(EpochMonitor, WritesWhatWasPredictedBesideWhatWasTaken) {
  const ScratchFolder folder;
  monitored(scenario_of(kFive, 64_GiB, kTable), folder);
  const Json batches = json_of(folder.path() / "run/batch_metrics.json");
  EXPECT_EQ(batches[0]["task_types"], Json::parse(R"(["T1", "T2"])"));
  EXPECT_NEAR(batches[0]["predicted_mb"].get<double>(), 128 + 2065.5 * 1.024, 1e-5);
  EXPECT_NEAR(batches[0]["prediction_error"].get<double>(), 2065.5 * 1.024 / 192 - 1, 1e-6);
}

TEST(EpochMonitor, AddsUpEachEpochAndTheRun) {
  const ScratchFolder folder;
  EpochScenario scenario = failing();
  scenario.setup.epochs = 2;
  monitored(scenario, folder);
  const Json epochs = json_of(folder.path() / "run/epoch_metrics.json");
  const Json report = json_of(folder.path() / "run/training_report.json");
  ASSERT_EQ(epochs.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(epochs[i]["epoch"], i);
    EXPECT_EQ(epochs[i]["batches"], 2);
    EXPECT_EQ(epochs[i]["ooms"], 1);
    EXPECT_EQ(epochs[i]["samples"], 3);
    EXPECT_EQ(epochs[i]["skipped_samples"], 2);
    EXPECT_EQ(epochs[i]["optimizer_steps"], 2);
    EXPECT_EQ(epochs[i]["budget_use"], (256.0 / 1024 + 224.0 / 1024) / 2);
    EXPECT_EQ(epochs[i]["peak_allocated_mb"], 640);
    EXPECT_TRUE(epochs[i]["predictor_error"].is_null());
    EXPECT_EQ(epochs[i]["tasks"]["T2"]["samples"], 1);
  }
  EXPECT_EQ(report["scenario"], "tiny");
  EXPECT_EQ(report["label"], "fixed");
  EXPECT_EQ(report["epochs"], 2);
  EXPECT_TRUE(report["ended_early"].is_null());
  EXPECT_EQ(report["totals"]["batches"], 4);
  EXPECT_EQ(report["totals"]["skipped_samples"], 4);
  EXPECT_NEAR(report["totals"]["duration_s"].get<double>(),
              epochs[0]["duration_s"].get<double>() + epochs[1]["duration_s"].get<double>(), 1e-12);
  EXPECT_EQ(report["metrics"]["untrained_samples"], 4);
  EXPECT_EQ(report["metrics"]["first_oom"], 2);
  EXPECT_EQ(report["tasks"]["T1"]["data_share"], 2.0 / 5);
  EXPECT_EQ(report["tasks"]["T1"]["sample_share"], 2.0 / 3);
}

// A new process goes on where the old one stood: numbers, times and totals of the epoch continue, and the
// memory begins anew.
TEST(EpochMonitor, ARestartLeavesNoGap) {
  const ScratchFolder folder;
  EpochScenario scenario = failing();
  monitored(scenario, folder);
  const Json once = timeless_batches(folder.path() / "run/batch_metrics.json");
  const Json totals = json_of(folder.path() / "run/training_report.json")["metrics"];
  scenario.restart_every = 2;
  monitored(scenario, folder);
  const Json restarted = timeless_batches(folder.path() / "run/batch_metrics.json");
  ASSERT_EQ(restarted.size(), 3u);
  EXPECT_EQ(restarted[1], once[1]);
  EXPECT_EQ(restarted[2]["batch_idx"], 2);
  EXPECT_EQ(restarted[2]["memory_allocated_mb"], once[2]["memory_allocated_mb"]);
  EXPECT_EQ(restarted[2]["memory_reserved_mb"], 224);  // not the 640 that the OOM left
  const Json epochs = json_of(folder.path() / "run/epoch_metrics.json");
  ASSERT_EQ(epochs.size(), 1u);
  EXPECT_EQ(epochs[0]["batches"], 2);
  EXPECT_EQ(epochs[0]["ooms"], 1);
  const Json report = json_of(folder.path() / "run/training_report.json");
  EXPECT_EQ(report["totals"]["duration_s"], epochs[0]["duration_s"]);
  for (const char* same : {"batches", "samples", "untrained_samples", "ooms", "first_oom", "optimizer_steps",
                           "budget_use", "padding_share", "task_share"}) {
    EXPECT_EQ(report["metrics"][same], totals[same]) << same;
  }
}

TEST(EpochMonitor, DrawsWhatThereIsAndNothingElse) {
  const ScratchFolder folder;
  const auto files = monitored(failing(), folder);
  const std::string run = folder.file("run/");
  EXPECT_THAT(
      files, ElementsAre(run + "batch_metrics.json", run + "epoch_metrics.json", run + "training_report.json",
                         run + "training_curves.svg", run + "task_comparison.svg"));
  const std::string curves = text_of(run + "training_curves.svg");
  for (const char* there : {"throughput", "peak allocated", "peak reserved", "batch size"}) {
    EXPECT_THAT(curves, HasSubstr(there));
  }
  EXPECT_THAT(curves, Not(HasSubstr("prediction error")));  // nothing was predicted
  EXPECT_THAT(curves, Not(HasSubstr("loss")));
  const std::string tasks = text_of(run + "task_comparison.svg");
  for (const char* there :
       {"T1", "T2", "share of the data", "of the samples trained on", "of the gradient"}) {
    EXPECT_THAT(tasks, HasSubstr(there));
  }

  EpochScenario predicting = declared();
  predicting.policies = {kTable};
  predicting.setup.process = {.card_total = 64_GiB, .context_bytes = 0};
  monitored(predicting, folder);
  EXPECT_THAT(text_of(run + "training_curves.svg"), HasSubstr("prediction error"));
  EXPECT_THAT(text_of(run + "training_curves.svg"), HasSubstr("loss, synthetic"));
  EXPECT_THAT(text_of(run + "task_comparison.svg"), HasSubstr("prediction error"));
}

BatchRecord record_of(std::int64_t number) {
  BatchRecord record{.number = number, .duration = SimTime{50'000'000}, .total = 1_GiB};
  record.shape.add({0, 0, 64, 64});
  record.padded_positions = 64;
  record.peak_allocated = static_cast<Bytes>(number) * 1_KiB;
  return record;
}

TEST(EpochMonitor, HoldsFewerThanAHundredBatches) {
  const ScratchFolder folder;
  const EpochScenario scenario = failing();
  EpochMonitor monitor{scenario, "fixed", folder.path() / "run"};
  for (std::int64_t number = 1; number <= 2350; ++number) {
    monitor.batch_ends(record_of(number));
    ASSERT_EQ(monitor.held_batches(), static_cast<std::size_t>(number % 100));
    ASSERT_LE(monitor.series().points().size(), BatchSeries::kMostPoints);
  }
  const EpochResult nothing = run_composer(scenario, scenario.policies.front());
  monitor.finish(nothing);
  const Json batches = json_of(folder.path() / "run/batch_metrics.json");
  ASSERT_EQ(batches.size(), 2350u);
  EXPECT_EQ(batches[2349]["batch_idx"], 2349);
}

// However many batches there are, the points stand for all of them.
TEST(BatchSeries, JoinsNeighboursAndLosesNone) {
  BatchSeries series;
  for (std::int64_t number = 1; number <= 2500; ++number) series.add(record_of(number));
  const auto& points = series.points();
  ASSERT_EQ(points.size(), 625u);  // joined at the 1001st and at the 2001st
  double batches = 0;
  for (const auto& point : points) {
    batches += point.batches;
    EXPECT_EQ(point.batches, 4);
    EXPECT_EQ(point.last_batch, batches);
    EXPECT_EQ(point.samples, 4);
    EXPECT_DOUBLE_EQ(point.seconds, 0.2);
    EXPECT_EQ(point.peak_gib, batches / 1024 / 1024);  // the highest of its batches
    EXPECT_EQ(point.with_loss, 0);
  }
  EXPECT_EQ(batches, 2500);
}

}  // namespace
}  // namespace vramlab
