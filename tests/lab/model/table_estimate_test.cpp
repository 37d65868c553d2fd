#include "lab/model/table_estimate.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

// The published table: base 4,000 at batch 8; 2,000 (small) at batch 32 is 8,000 and with training 20,000.
TEST(TableEstimate, ScalesAJobWithBatchLengthAndTraining) {
  EXPECT_EQ(estimate_job({.size = "small", .batch = 32, .training = false}).required_mb, 8000);
  EXPECT_EQ(estimate_job({.size = "small", .batch = 32, .training = true}).required_mb, 20000);
  EXPECT_EQ(estimate_job({.batch = 32, .training = true}).required_mb, 40000);
  EXPECT_EQ(estimate_job({.size = "xlarge", .sequence = 1024, .training = false}).required_mb, 32000);
  EXPECT_EQ(estimate_job({.type = "cnn", .size = "large", .sequence = 1024, .training = false}).required_mb,
            4000);  // no length
  // As the published queue computes: the medium row whatever the size, and no ratio below 1.
  EXPECT_EQ(estimate_job({.size = "xlarge", .batch = 4, .sequence = 128, .faithful = true}).required_mb,
            10000);
  EXPECT_EQ(estimate_job({.size = "xlarge", .batch = 16, .faithful = true}).base_mb, 4000);
  EXPECT_EQ(estimate_job({.type = "rnn", .batch = 4, .training = false}).required_mb, 1500);
}

// The published table: 0.15 + 0.12 GB, an image 0.28 + 0.35 GB, factors 1, 1.85, 1.87.
TEST(TableEstimate, AddsUpABatchOfMixedTasks) {
  const TaskEstimateResult one =
      estimate_tasks({.samples = 5, .tasks = {{"T1", 1}}, .batch = 1, .epochs = 3});
  EXPECT_DOUBLE_EQ(one.per_batch_mb, 1024 * (0.15 + 0.12 + 0.63));
  EXPECT_EQ(one.batches, 15);
  const TaskEstimateResult mixed = estimate_tasks({.samples = 5000, .epochs = 3});
  EXPECT_NEAR(mixed.per_batch_mb, 1024 * (0.27 + 16 * 0.63 * (0.4 + 0.3 * 3 * 1.85 + 0.3 * 4 * 1.87)), 1e-6);
  EXPECT_NEAR(mixed.peak_mb, 1024 * (0.27 + 16 * 0.63 * 4 * 1.87), 1e-6);
  EXPECT_EQ(mixed.batches, 939);
  const TaskEstimateResult inference = estimate_tasks({.tasks = {{"T1", 1}}, .batch = 1, .training = false});
  EXPECT_DOUBLE_EQ(inference.per_batch_mb, 1024 * (0.15 + 0.12 + 0.28));
}

// (8 - 0.27) / 0.63, / (3 · 0.63 · 1.85), / (4 · 0.63 · 1.87), rounded down.
TEST(TableEstimate, FindsTheLargestBatchOfEachTask) {
  const TaskEstimateResult result = estimate_tasks({.samples = 5000, .budget = 8_GiB});
  EXPECT_EQ(result.safe_batch, (std::map<std::string, std::int64_t>{{"T1", 12}, {"T2", 2}, {"T3", 1}}));
}

// (8 - 0.27) / 0.63, / (4 · 0.63 · 1.85), / (8 · 0.63 · 1.87), rounded down.
TEST(TableEstimate, CountsTheImagesThatSamplesHave) {
  const TaskEstimateResult result =
      estimate_tasks({.images = {{"T2", 4}, {"T3", 8}}, .batch = 1, .budget = 8_GiB});
  EXPECT_EQ(result.images, (std::map<std::string, std::int64_t>{{"T1", 1}, {"T2", 4}, {"T3", 8}}));
  EXPECT_EQ(result.safe_batch, (std::map<std::string, std::int64_t>{{"T1", 12}, {"T2", 1}, {"T3", 0}}));
  EXPECT_DOUBLE_EQ(result.peak_mb, 1024 * (0.27 + 8 * 0.63 * 1.87));
}

// A sample of T1 takes 0.63 GB by the table. Ten took 1.26: (8 - 0.27) / 1.26 is 6.1. Of T2 too few were
// measured.
TEST(TableEstimate, TenMeasuredSamplesCalibrateATask) {
  TaskEstimate asked{.budget = 8_GiB};
  asked.measured.assign(9, {"T1", 1024 * (0.27 + 1.26)});
  asked.measured.push_back({"T2", 5000});
  EXPECT_EQ(estimate_tasks(asked).safe_batch.at("T1"), 12);
  asked.measured.push_back({"T1", 1024 * (0.27 + 1.26)});
  const TaskEstimateResult result = estimate_tasks(asked);
  EXPECT_EQ(result.safe_batch, (std::map<std::string, std::int64_t>{{"T1", 6}, {"T2", 2}, {"T3", 1}}));
  const TaskCalibration& one = result.calibration.at("T1");
  EXPECT_EQ(one.samples, 10);
  EXPECT_NEAR(one.factor, 2, 1e-8);
  EXPECT_NEAR(one.table_error, 1 - 0.9 / 1.53, 1e-8);
  EXPECT_NEAR(one.error, 0, 1e-8);
  EXPECT_EQ(result.calibration.at("T2").factor, 1);

  // Forward passes alone: 0.28 GB an image.
  TaskEstimate inference{.tasks = {{"T1", 1}}, .batch = 1, .training = false};
  inference.measured.assign(10, {"T1", 1024 * (0.27 + 0.14)});
  EXPECT_NEAR(estimate_tasks(inference).per_batch_mb, 1024 * (0.27 + 0.14), 1e-5);
}

TEST(TableEstimate, ReadsMeasuredSamples) {
  const std::filesystem::path file = std::filesystem::path{testing::TempDir()} / "measured.csv";
  const auto read = [&](const char* text) {
    std::ofstream{file} << text;
    return read_measured_samples(file);
  };
  const auto samples = read("mb,task\n1000.5,T1\n2000,T3\n");
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].task, "T1");
  EXPECT_EQ(samples[0].mb, 1000.5);
  EXPECT_THROW(read("task,mb,loss\nT1,1000,1\n"), InputError);
  EXPECT_THROW(read("task\n"), InputError);
  try {
    read("task,mb\nT4,1000\nT1,276\nT1,x\nT1,1000\n");
    FAIL();
  } catch (const InputError& error) {  // every row's
    ASSERT_EQ(error.problems().size(), 3U);
    EXPECT_EQ(error.problems()[1].where, file.string() + ":3");
  }
}

TEST(TableEstimate, RefusesWhatTheTablesDoNotHold) {
  EXPECT_THROW(estimate_job({.type = "mlp"}), InputError);
  EXPECT_THROW(estimate_job({.type = "cnn", .size = "xlarge"}), InputError);
  EXPECT_THROW(estimate_job({.batch = 0}), InputError);
  EXPECT_THROW(estimate_tasks({.tasks = {{"T4", 1}}}), InputError);
  EXPECT_THROW(estimate_tasks({.tasks = {{"T1", 0.5}}}), InputError);
  EXPECT_THROW(estimate_tasks({.samples = 0}), InputError);
  EXPECT_THROW(estimate_tasks({.images = {{"T4", 1}}}), InputError);
  EXPECT_THROW(estimate_tasks({.images = {{"T1", 0}}}), InputError);
}

}  // namespace
}  // namespace vramlab
