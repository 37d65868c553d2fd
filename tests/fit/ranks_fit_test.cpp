// Recordings of a program with one and two ranks, and what follows for more.
#include <filesystem>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fit/fit_model.hpp"
#include "lab/model/measured_grid.hpp"
#include "lab/model/ranks.hpp"
#include "tests/fit/recorded_run.hpp"

namespace vramlab {
namespace {

const std::filesystem::path kSourceFolder = VRAMLAB_SOURCE_DIR;

/// A step over `n` ranks: a weight of 8,000 bytes is gathered from shards where there are several, used, and
/// its gradient shared out; activations follow the batch.
StepRecord sharded_step(std::int64_t n, std::int64_t batch, bool is_first) {
  StepRecord step;
  step.mark = {.is_step = true, .label = "b" + std::to_string(batch)};
  step.mark.parameters.scalars = {{"batch", batch}, {"seq", 16}};
  const auto make = [&](std::int64_t size, Fate fate = Fate::freed) {
    step.allocations.push_back({.size = static_cast<Bytes>(size), .fate = fate});
    const auto number = static_cast<std::uint32_t>(step.allocations.size() - 1);
    step.actions.push_back({StepAction::Kind::allocate, number});
    return number;
  };
  const auto drop = [&](std::uint32_t number) { step.actions.push_back({StepAction::Kind::free, number}); };
  if (is_first) make(8000 / n, Fate::forever);
  std::uint32_t whole = 0;
  if (n > 1) {
    const std::uint32_t part = make(4000 / n);
    whole = make(4000);
    drop(part);
  }
  const std::uint32_t output = make(batch * 1000);
  if (!is_first) step.actions.push_back({StepAction::Kind::free_kept, 0});
  const std::uint32_t gradient = make(4000);
  make(8000 / n, Fate::kept);
  drop(gradient);
  drop(output);
  if (n > 1) drop(whole);
  return step;
}

RankModel sharded_rank(std::int64_t n, std::uint32_t rank) {
  RecordedRun run;
  run.build = {8000, -1, 8000 / n};
  for (const std::int64_t batch : {1, 2, 4}) {
    for (int visit = 0; visit < 2; ++visit) run.steps.push_back(sharded_step(n, batch, run.steps.empty()));
  }
  return {.place = {static_cast<std::uint32_t>(n), rank}, .spec = fit_model({run}, "sharded").spec};
}

std::vector<Bytes> sizes_of_program(const StepProgram& program) {
  std::vector<Bytes> sizes;
  for (const MemoryOp& op : program.ops) sizes.push_back(op.size);  // 0 = a free
  return sizes;
}

TEST(RanksFit, ShardsAreSharedAndWholeWeightsStay) {
  std::vector<std::string> warnings;
  const RankModels models =
      join_ranks({sharded_rank(1, 0), sharded_rank(2, 0), sharded_rank(2, 1)}, warnings);
  EXPECT_TRUE(warnings.empty());
  for (const std::uint32_t n : {1U, 2U, 4U, 8U}) {
    const RankWorkloads workloads = rank_workloads(models, n);
    EXPECT_EQ(workloads.extrapolated(), n > 2);
    EXPECT_EQ(workloads.models.size(), n == 1 ? 1U : 2U);
    const WorkloadModel& model = *workloads.models[0];
    const RecordedModel real(sharded_rank(n, 0).spec);
    EXPECT_EQ(sizes_of_program(model.step({3})), sizes_of_program(real.step({3}))) << n << " ranks";
    EXPECT_EQ(sizes_of_program(model.build()), sizes_of_program(real.build())) << n << " ranks";
  }
}

TEST(RanksFit, TheFileOfAModelKeepsIt) {
  std::vector<std::string> warnings;
  const RankModels models = join_ranks({sharded_rank(1, 0), sharded_rank(2, 0)}, warnings);
  const Json json = rank_models_json(models, "sharded");
  const RankModels read = read_rank_models(json, "file: ");
  EXPECT_EQ(read.all()[1].fewer, models.all()[1].fewer);
  EXPECT_EQ(rank_models_json(read, "sharded"), json);
}

TEST(RanksFit, RanksOfOtherParametersAreRefused) {
  RankModel other = sharded_rank(2, 0);
  other.spec.parameters[0].name = "rows";
  std::vector<std::string> warnings;
  EXPECT_THROW(join_ranks({sharded_rank(1, 0), other}, warnings), InputError);
}

// Real training on H200s: recorded with one and two ranks, measured with one to four.
class RanksOnH200 : public testing::TestWithParam<const char*> {
 protected:
  static std::vector<RankModel> recorded(const std::string& program) {
    std::vector<RankModel> models;
    for (const auto& [world, rank] : {std::pair{1U, 0U}, std::pair{2U, 0U}, std::pair{2U, 1U}}) {
      const auto run = recorded_run(program + "_w" + std::to_string(world) + ".rank" + std::to_string(rank));
      if (!run) return {};
      models.push_back({.place = {world, rank}, .spec = fit_model({*run}, program).spec});
    }
    return models;
  }
};

TEST_P(RanksOnH200, MoreRanksThanWereRecorded) {
  const std::string program = GetParam();
  auto ranks = recorded(program);
  if (ranks.empty()) GTEST_SKIP() << program << " is not there (../shared/data/programs-h200)";
  std::vector<std::string> warnings;
  const RankModels models = join_ranks(std::move(ranks), warnings);
  for (std::uint32_t n = 1; n <= 4; ++n) {
    const auto file =
        n <= 2 ? kSourceFolder / "../shared/data/programs-h200" /
                     (program + "_w" + std::to_string(n) + ".rank0.grid.json")
               : kSourceFolder / "tests/data/grids" / (program + "-" + std::to_string(n) + "-ranks.json");
    const MeasuredGrid grid = read_grid_file(file);
    const RankWorkloads workloads = rank_workloads(models, n);
    EXPECT_EQ(workloads.extrapolated(), n > 2);
    const GridErrors errors = grid_errors(grid, replay_grid(grid, workloads));
    const ErrorSummary allocated = summarise(errors.rows[0].allocated);
    const ErrorSummary reserved = summarise(errors.rows[0].reserved);
    EXPECT_LE(100 * allocated.median, 0.3) << n;
    EXPECT_LE(100 * allocated.largest, 1) << n;
    EXPECT_LE(100 * reserved.median, 1.5) << n;
    EXPECT_LE(100 * reserved.largest, 8) << n;
    const Json json = read_json_file(file);
    const auto outside = dynamic_cast<const RecordedModel&>(*workloads.models[0]).spec().outside;
    EXPECT_NEAR(static_cast<double>(outside), json["rows"][0]["outside"].get<double>(), 4.0 * (1 << 20)) << n;
  }
  Bytes before = 0;  // the more ranks, the less or as much on each
  for (const std::uint32_t n : {64U, 16U, 8U, 4U, 2U}) {
    const RankWorkloads workloads = rank_workloads(models, n);
    PredictionQuestion question(*workloads.models[0]);
    question.gpu = &find_gpu("h200-141gb");
    const Prediction prediction = predict_step(question);
    EXPECT_GE(prediction.peak_allocated, before) << n;
    before = prediction.peak_allocated;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, RanksOnH200, testing::Values("fsdp", "ddp"),
                         [](const auto& one) { return std::string{one.param}; });

}  // namespace
}  // namespace vramlab
