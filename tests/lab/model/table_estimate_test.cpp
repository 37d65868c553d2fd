#include "lab/model/table_estimate.hpp"

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

TEST(TableEstimate, RefusesWhatTheTablesDoNotHold) {
  EXPECT_THROW(estimate_job({.type = "mlp"}), InputError);
  EXPECT_THROW(estimate_job({.type = "cnn", .size = "xlarge"}), InputError);
  EXPECT_THROW(estimate_job({.batch = 0}), InputError);
  EXPECT_THROW(estimate_tasks({.tasks = {{"T4", 1}}}), InputError);
  EXPECT_THROW(estimate_tasks({.tasks = {{"T1", 0.5}}}), InputError);
  EXPECT_THROW(estimate_tasks({.samples = 0}), InputError);
}

}  // namespace
}  // namespace vramlab
