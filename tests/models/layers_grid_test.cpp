// Networks by their layers against measured grids: nothing of them but the config.json went in.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/model/file.hpp"
#include "lab/model/layers.hpp"
#include "lab/model/measured_grid.hpp"
#include "lab/model/prediction.hpp"
#include "tests/models/known_networks.hpp"

namespace vramlab {
namespace {

using layers::MixedPrecision;
using layers::Number;
using layers::Optimizer;
using layers::RunSpec;

struct Measured {
  std::string grid;
  std::string config;
  RunSpec run;
  double median = 0;  ///< errors of peak allocated, the most that is allowed
  double p95 = 0;
};

class LayersGrid : public testing::TestWithParam<Measured> {};

// The demand on a config alone is 6 % at the median and 15 % at the 95th percentile. What is asserted is what
// is reached, rounded up: the difference is what building the model left behind (tails of blocks), and the
// vision transformer of torch, which has a dropout more in each layer than that of transformers.
TEST_P(LayersGrid, PeakAllocatedIsNearTheMeasuredOne) {
  const Measured& known = GetParam();
  const MeasuredGrid grid =
      read_grid_file(std::string{VRAMLAB_SOURCE_DIR} + "/tests/data/grids/" + known.grid + ".json");
  const layers::LayersModel model = known::model_of(known.config, known.run);
  const auto predictions = replay_grid(grid, model);
  const GridErrors errors = grid_errors(grid, predictions);
  EXPECT_EQ(errors.skipped, 0u);
  EXPECT_EQ(errors.rows[0].allocated.size(), grid.rows.size());
  const ErrorSummary allocated = summarise(errors.rows[0].allocated);
  EXPECT_LE(allocated.median, known.median);
  EXPECT_LE(allocated.p95, known.p95);
}

const RunSpec kDecoderRun{.weights = Number::bfloat16, .optimizer = Optimizer::adamw_fused};
const RunSpec kRecomputedRun{
    .weights = Number::bfloat16, .optimizer = Optimizer::adamw_fused, .recompute_every = 1};
const RunSpec kMixedRun{.autocast = MixedPrecision::bfloat16};

RunSpec shared_by(std::int64_t cards) { return {.autocast = MixedPrecision::bfloat16, .shards = cards}; }

INSTANTIATE_TEST_SUITE_P(
    Grids, LayersGrid,
    testing::Values(Measured{"llama", known::kDecoder, kDecoderRun, 0.005, 0.015},
                    Measured{"llama-large", known::kDecoder, kDecoderRun, 0.005, 0.015},
                    Measured{"llama-checkpointed", known::kDecoder, kRecomputedRun, 0.01, 0.015},
                    Measured{"llama-checkpointed-large", known::kDecoder, kRecomputedRun, 0.01, 0.015},
                    Measured{"gpt2", known::kGpt2, kMixedRun, 0.001, 0.005},
                    Measured{"bert-base", known::kBert, kMixedRun, 0.005, 0.015},
                    Measured{"bert-base-large", known::kBert, kMixedRun, 0.005, 0.015},
                    Measured{"vit", known::kVision, kMixedRun, 0.01, 0.02},
                    Measured{"vit-large", known::kVision, kMixedRun, 0.03, 0.05},
                    Measured{"generate",
                             known::kGenerator,
                             {.task = layers::Task::generation, .weights = Number::float16},
                             0.01,
                             0.015},
                    Measured{"fsdp-3-ranks", known::kDecoder, shared_by(3), 0.02, 0.05},
                    Measured{"fsdp-4-ranks", known::kDecoder, shared_by(4), 0.02, 0.05}),
    [](const auto& one) {
      std::string name = one.param.grid;
      for (char& letter : name) letter = letter == '-' ? '_' : letter;
      return name;
    });

// Eleven networks that were measured when the model was done, each point here in a process of its own. Two of
// them showed mistakes (attention with grouped queries in single precision, norms that are not trained),
// which were mended then; the other nine were met at once.
TEST(LayersMeasured, NetworksThatWereNeverRecordedAreMet) {
  const std::string file = std::string{VRAMLAB_SOURCE_DIR} + "/tests/data/networks-h200.json";
  std::vector<double> errors;
  const Json measured = read_json_file(file);
  for (const Json& one : measured["networks"]) {
    layers::LayersSpec spec;
    spec.name = one["name"].get<std::string>();
    spec.network = read_network_config(one["config"], file + ": ").network;
    const bool vision = layers::family_of(spec.network.architecture) == layers::Family::vision;
    Json json = layers_model_json(spec, "");
    json["run"] = one["run"];
    json["parameters"] = {{"batch", {1, 64}}, {vision ? "px" : "seq", {16, 2048}}};
    const auto model = parse_model(json, file + ": ");
    for (const Json& row : one["rows"]) {
      PredictionQuestion question(*model);
      question.gpu = &find_gpu("h200-141gb");
      question.point = row["point"].get<Point>();
      const auto real = row["peak_allocated"].get<double>();
      const double error = std::abs(static_cast<double>(predict_step(question).peak_allocated) - real) / real;
      EXPECT_LE(error, 0.0105) << spec.name << " at " << row["point"];
      errors.push_back(error);
    }
  }
  EXPECT_EQ(errors.size(), 35u);
  EXPECT_LE(summarise(errors).median, 0.0015);
}

}  // namespace
}  // namespace vramlab
