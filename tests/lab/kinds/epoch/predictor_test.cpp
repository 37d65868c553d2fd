// How well batch memory is predicted after few batches, with the measured grid of the recorded task mix as
// truth. Only peaks of whole batches are ever observed.
#include <algorithm>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "lab/kinds/epoch/data.hpp"
#include "lab/model/file.hpp"
#include "lab/model/measured_grid.hpp"
#include "models/recorded_model.hpp"
#include "policies/contract/policy_set.hpp"
#include "policies/predictors/regression_predictor.hpp"
#include "policies/predictors/table_predictor.hpp"
#include "sim/runs/epoch_loop.hpp"

namespace vramlab {
namespace {

const std::vector<std::string> kTasks{"T1", "T2", "T3"};

/// Keeps shape and rise of every batch but the first, which is not typical of a process.
class Observed : public BatchListener {
 public:
  struct Batch {
    BatchShape shape;
    Bytes rise = 0;
  };
  void batch_ends(const BatchRecord& batch) override {
    if (batch.number > 1 && batch.result == StepResult::ok) {
      batches.push_back({batch.shape, batch.peak_allocated - batch.allocated_before});
    }
  }
  void epoch_ends(std::int64_t, const EpochTotals&) override {}
  std::vector<Batch> batches;
};

/// The batches that `profile` composes of the mix at 40/30/30, as they come.
std::vector<Observed::Batch> observed(const std::string& use, const std::string& profile) {
  static const std::shared_ptr<const WorkloadModel> model =
      load_model_file(VRAMLAB_SOURCE_DIR "/models/mixed-tasks.json");
  const RecordedBatches batches{std::dynamic_pointer_cast<const RecordedModel>(model), kTasks};
  const std::vector<TaskSort> tasks{{"T1", 40, 1, 32, 96}, {"T2", 30, 3, 64, 160}, {"T3", 30, 4, 128, 320}};
  Observed kept;
  EpochSetup setup;
  setup.model = &batches;
  setup.tasks = kTasks;
  setup.samples = draw_samples(tasks, 2000, {}, batches.tokens_per_image(), 1);
  setup.target_batch = 32;
  setup.process = {.card_total = 80_GiB, .context_bytes = 527_MiB};
  setup.process.allocator.limit = 12_GiB;
  setup.loss.weights = {1, 1, 1};
  setup.stop_after = 120;
  setup.listener = &kept;
  const auto composer = builtin_policies()->composers.make({use, profile, {}, ""}, kTasks);
  run_epochs(setup, *composer);
  return kept.batches;
}

/// Teaches `predictor` until batches with `samples` samples of each task were seen.
void teach(MemoryPredictor& predictor, const std::vector<Observed::Batch>& batches, std::int64_t samples) {
  std::array<std::int64_t, kMostTasks> seen{};
  for (const auto& batch : batches) {
    predictor.learn(batch.shape, batch.rise);
    for (std::size_t task = 0; task < 3; ++task) seen[task] += batch.shape.task_samples[task];
    if (*std::min_element(seen.begin(), seen.begin() + 3) >= samples) return;
  }
  FAIL() << "too few batches";
}

struct Errors {
  double median = 0;                ///< over all points
  std::array<double, 3> by_task{};  ///< median over the points that hold samples of the task
};

/// |predicted − measured| / measured of what a step takes above its base, over the 54 measured points.
Errors errors_on_grid(const MemoryPredictor& predictor) {
  static const MeasuredGrid grid = read_grid_file(VRAMLAB_SOURCE_DIR "/tests/data/grids/mixed-tasks.json");
  std::vector<double> all;
  std::array<std::vector<double>, 3> by_task;
  for (const GridRow& row : grid.rows) {
    BatchShape shape;
    std::size_t next = 0;
    const std::int32_t images[] = {1, 3, 4};
    for (std::uint32_t task = 0; task < 3; ++task) {
      for (std::int64_t i = 0; i < row.parameters[kTasks[task]].get<std::int64_t>(); ++i) {
        const auto length = row.parameters["text_lengths"][next++].get<std::int64_t>();
        shape.add({task, images[task], length, length + 49 * images[task]});
      }
    }
    EXPECT_EQ(shape.longest, row.parameters["padded_length"].get<std::int64_t>());
    const auto taken = static_cast<double>(row.peak_allocated - row.base);
    const double error = std::abs(static_cast<double>(predictor.predict(shape).likely) - taken) / taken;
    all.push_back(error);
    for (std::size_t task = 0; task < 3; ++task) {
      if (shape.task_samples[task] > 0) by_task[task].push_back(error);
    }
  }
  Errors errors{summarise(all).median, {}};
  for (std::size_t task = 0; task < 3; ++task) errors.by_task[task] = summarise(by_task[task]).median;
  return errors;
}

Errors regression_after(const std::string& use, const std::string& profile, std::int64_t samples) {
  RegressionPredictor regression{normal_quantile(0.99)};
  teach(regression, observed(use, profile), samples);
  return errors_on_grid(regression);
}

Errors table_after(const std::string& use, const std::string& profile, std::int64_t samples) {
  TablePredictor table{kTasks, TablePredictor::Form::sum};
  teach(table, observed(use, profile), samples);
  return errors_on_grid(table);
}

const std::pair<const char*, const char*> kBatches[] = {
    {"planned-batches", "fixed"}, {"memory-aware-sampler", "dense"}, {"memory-aware-sampler", "mixed"}};

TEST(EpochPredictors, RegressionIsWithinThreePercentAfterAHundredSamplesOfEachTask) {
  for (const auto& [use, profile] : kBatches) {
    EXPECT_LE(regression_after(use, profile, 100).median, 0.03) << profile;
  }
}

// Published claims are ±5 %, ±8 % and ±10 % for T1, T2 and T3 after 10 samples of each.
TEST(EpochPredictors, TheClaimsAfterTenSamplesHoldForTheRegression) {
  for (const auto& [use, profile] : kBatches) {
    const Errors errors = regression_after(use, profile, 10);
    EXPECT_LE(errors.by_task[0], 0.05) << profile;
    EXPECT_LE(errors.by_task[1], 0.08) << profile;
    EXPECT_LE(errors.by_task[2], 0.10) << profile;
  }
}

TEST(EpochPredictors, TheClaimsAfterTenSamplesDoNotHoldForTheTable) {
  for (const auto& [use, profile] : kBatches) {
    const Errors table = table_after(use, profile, 10);
    EXPECT_GT(table.by_task[0], 0.05) << profile;
    EXPECT_GT(table.by_task[1], 0.08) << profile;
    EXPECT_GT(table.by_task[2], 0.10) << profile;
  }
}

}  // namespace
}  // namespace vramlab
