// The models that come with the program, against measured steps: each grid replayed in file order in one
// process. Figures as measured on 2026-11-28 with the models of that day; a better model lowers them.
#include <algorithm>
#include <ostream>

#include <gtest/gtest.h>

#include "lab/model/file.hpp"
#include "lab/model/measured_grid.hpp"
#include "models/recorded_model.hpp"
#include "sim/runs/step_runner.hpp"

namespace vramlab {
namespace {

const std::string kShippedSource = VRAMLAB_SOURCE_DIR;

struct Figures {
  const char* model;
  std::size_t points;
  double allocated_median, allocated_p95;  // %, at most
  double reserved_median, reserved_p95;
  double time_median;
  std::size_t allocated_exact;  // points equal to the byte, at least
};

void PrintTo(const Figures& figures, std::ostream* out) { *out << figures.model; }

class ShippedModel : public testing::TestWithParam<Figures> {};

TEST_P(ShippedModel, IsAsFarFromItsGridAsItsCardSays) {
  const Figures& figures = GetParam();
  const MeasuredGrid grid = read_grid_file(kShippedSource + "/tests/data/grids/" + figures.model + ".json");
  const auto model = load_model_file(kShippedSource + "/models/" + figures.model + ".json");
  const GridErrors errors = grid_errors(grid, replay_grid(grid, *model));
  EXPECT_EQ(errors.skipped, 0U);
  const ErrorSummary allocated = summarise(errors.rows[0].allocated);
  const ErrorSummary reserved = summarise(errors.rows[0].reserved);
  EXPECT_EQ(allocated.points, figures.points);
  EXPECT_LE(100 * allocated.median, figures.allocated_median);
  EXPECT_LE(100 * allocated.p95, figures.allocated_p95);
  EXPECT_LE(100 * reserved.median, figures.reserved_median);
  EXPECT_LE(100 * reserved.p95, figures.reserved_p95);
  EXPECT_LE(100 * summarise(errors.times).median, figures.time_median);
  EXPECT_GE(allocated.exact, figures.allocated_exact);
}

INSTANTIATE_TEST_SUITE_P(Grids, ShippedModel,
                         testing::Values(Figures{"gpt2", 45, 0.03, 0.10, 0.12, 5.6, 5.4, 3},
                                         Figures{"lstm", 33, 0.11, 0.11, 0.06, 0.21, 5.4, 0},
                                         Figures{"generate", 12, 0, 0.09, 0.45, 3.8, 6.6, 9},
                                         Figures{"resnet50", 42, 0.15, 0.73, 1.9, 16.0, 10, 0},
                                         Figures{"mixed-tasks", 54, 0.09, 0.40, 0.17, 2.3, 8.2, 0},
                                         Figures{"superres-recorded", 85, 0, 0.66, 0.31, 3.4, 4.1, 55},
                                         Figures{"llama", 43, 0.05, 0.14, 0.17, 1.4, 9.1, 7},
                                         Figures{"llama-checkpointed", 29, 0.03, 0.22, 0.30, 2.6, 10.5, 7},
                                         Figures{"vit", 50, 0.15, 0.69, 1.2, 5.5, 6.7, 1},
                                         Figures{"bert-base", 42, 0.08, 0.26, 0.31, 13.3, 11.7, 0}),
                         [](const auto& one) {
                           std::string name = one.param.model;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Where the host is no bottleneck a step time is at most 10 % off at the median and 20 % at the 95th
// percentile, over the points of both grids that did not give the law; the larger grid lies beyond what the
// models are meant for.
struct Timed {
  const char* model;
  std::size_t points;
};

void PrintTo(const Timed& timed, std::ostream* out) { *out << timed.model; }

class TimedModel : public testing::TestWithParam<Timed> {};

TEST_P(TimedModel, IsNearWhereTheHostIsNoBottleneck) {
  const auto shipped = load_model_file(kShippedSource + "/models/" + GetParam().model + ".json");
  const auto* recorded = dynamic_cast<const RecordedModel*>(shipped.get());
  ASSERT_NE(recorded, nullptr);
  RecordedSpec spec = recorded->spec();
  for (Parameter& parameter : spec.parameters) parameter.high = 4096;
  const RecordedModel model(spec);
  std::vector<double> off;
  for (const char* size : {"", "-large"}) {
    const MeasuredGrid grid =
        read_grid_file(kShippedSource + "/tests/data/grids/" + GetParam().model + size + ".json");
    const GridErrors errors = grid_errors(grid, replay_grid(grid, model));
    off.insert(off.end(), errors.card_times.begin(), errors.card_times.end());
  }
  EXPECT_EQ(off.size(), GetParam().points);
  EXPECT_LE(100 * summarise(off).median, 10);
  EXPECT_LE(100 * summarise(off).p95, 20);
}

INSTANTIATE_TEST_SUITE_P(Grids, TimedModel,
                         testing::Values(Timed{"vit", 10}, Timed{"llama", 12},
                                         Timed{"llama-checkpointed", 11}, Timed{"bert-base", 10}),
                         [](const auto& one) {
                           std::string name = one.param.model;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// What is missing of the LSTM is one allocation: a workspace of 1 MiB that the measured process holds and the
// recorded one never asked for. With it every peak is met to the byte.
TEST(LstmModel, LacksOneWorkspaceOfOneMiB) {
  const MeasuredGrid grid = read_grid_file(kShippedSource + "/tests/data/grids/lstm.json");
  const auto shipped = load_model_file(kShippedSource + "/models/lstm.json");
  RecordedSpec spec = dynamic_cast<const RecordedModel&>(*shipped).spec();
  const auto ensures = [](const RecordedOp& op) {
    return op.kind == RecordedOp::Kind::ensure && op.what == 1;
  };
  const auto second = std::find_if(spec.program.begin(), spec.program.end(), ensures);
  ASSERT_NE(second, spec.program.end());
  ASSERT_EQ(spec.extras[1], 32_MiB);
  spec.program.insert(second + 1, {RecordedOp::Kind::ensure, static_cast<std::uint32_t>(spec.extras.size())});
  spec.extras.push_back(1_MiB);
  const GridErrors errors = grid_errors(grid, replay_grid(grid, RecordedModel(spec)));
  EXPECT_EQ(summarise(errors.rows[0].allocated).exact, 33U);
  EXPECT_EQ(summarise(errors.rows[0].reserved).exact, 25U);
}

class EveryModel : public testing::TestWithParam<const char*> {};

// Runs of steps at two points in turn, under a limit that some of them do not fit: every outcome and every
// counter is the same with and without the step cache.
TEST_P(EveryModel, IsTheSameWithTheStepCache) {
  const auto model = load_model_file(kShippedSource + "/models/" + GetParam() + ".json");
  Point small;
  Point large;
  for (const Parameter& parameter : model->parameters().parameters) {
    small.push_back(parameter.low + (parameter.high - parameter.low) / 32);
    large.push_back(parameter.low + (parameter.high - parameter.low) / 8);
  }
  ProcessSetup setup{.card_total = 80_GiB, .context_bytes = 512_MiB, .allocator = {}, .use_step_cache = true};
  setup.allocator.limit = 6_GiB;
  StepRunner cached(*model, setup);
  setup.use_step_cache = false;
  StepRunner full(*model, setup);
  for (int step = 0; step < 120; ++step) {
    const Point& point = step / 30 % 2 == 0 ? small : large;
    const StepOutcome a = cached.run(point);
    const StepOutcome b = full.run(point);
    ASSERT_EQ(a.result, b.result) << step;
    ASSERT_EQ(a.duration, b.duration) << step;
    ASSERT_EQ(a.peak_allocated, b.peak_allocated) << step;
    ASSERT_EQ(a.peak_reserved, b.peak_reserved) << step;
    ASSERT_EQ(cached.stats(), full.stats()) << step;
  }
  // Some models wander: small tensors never meet an old layout again (docs/decisions.md).
  const std::string name = GetParam();
  if (name != "bert-base" && name != "resnet50" && name != "vit") {
    EXPECT_GT(cached.cache_hits(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel,
                         testing::Values("gpt2", "bert-base", "resnet50", "lstm", "generate", "mixed-tasks",
                                         "superres-recorded", "superres-rrdb6", "llama", "llama-checkpointed",
                                         "vit"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace vramlab
