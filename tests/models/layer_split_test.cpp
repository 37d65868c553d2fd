// Layers over two cards, against peaks of a real run: decoding with 12 layers spread 6/6 and 2/10 over two
// H100s (tests/data/grids/generate-two-gpus.json). The model was made from another recording, of one card.
#include "models/layer_split.hpp"

#include <fstream>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "lab/model/file.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/runs/batch_search_loop.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;

const std::string kSource = VRAMLAB_SOURCE_DIR;

TEST(LayerNumbers, FindsWhatRepeats) {
  const std::vector<std::int64_t> sequence{9, 9, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 7};
  EXPECT_THAT(layer_numbers(sequence, 3), ElementsAre(-1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3));
  EXPECT_THAT(layer_numbers(sequence, 4), ElementsAre());
  EXPECT_THAT(layer_numbers({5, 5, 5, 5, 5, 5, 5, 5}, 2), ElementsAre());  // no layer is one size repeated
}

class TwoCards : public testing::Test {
 protected:
  TwoCards() {
    std::ifstream file(kSource + "/tests/data/grids/generate-two-gpus.json");
    truth = Json::parse(file);
    const auto loaded = load_model_file(kSource + "/models/generate.json");
    const auto& whole = dynamic_cast<const RecordedModel&>(*loaded);
    // The grid goes beyond the 128 samples the model is offered for.
    RecordedSpec spec = whole.spec();
    spec.parameters[0].high = 512;
    model = std::make_unique<RecordedModel>(std::move(spec));
  }

  [[nodiscard]] LayerSplit split(const std::string& name) const {
    return LayerSplit{*model,
                      name == "even" ? std::vector<std::int64_t>{6, 6} : std::vector<std::int64_t>{2, 10}};
  }

  [[nodiscard]] Point point(std::int64_t batch) const {
    Point at(3);
    at[*model->parameters().find("batch")] = batch;
    at[*model->parameters().find("prompt")] = truth["prompt"];
    at[*model->parameters().find("new")] = truth["new"];
    return at;
  }

  [[nodiscard]] BatchSearchSetup search(const LayerSplit& split, Bytes limit) const {
    const ProcessSetup card{.card_total = truth["total_memory"][0],
                            .context_bytes = kContextBytes,
                            .allocator = {.settings = {}, .limit = limit}};
    return {.model = &split,
            .parameter = *model->parameters().find("batch"),
            .low = 1,
            .high = 512,
            .phases = {{.name = "generation", .point = point(1)}},
            .cards = {card, card}};
  }

  Json truth;
  std::unique_ptr<RecordedModel> model;
};

TEST_F(TwoCards, PeaksAreWithinThreePercentOfThoseMeasured) {
  double largest = 0;
  std::size_t points = 0;
  for (const Json& row : truth["rows"]) {
    const LayerSplit parts = split(row["split"]);
    const BatchSearchSetup setup = search(parts, truth["total_memory"][0]);
    const SearchTrial trial = probe_batch(setup, row["batch"].get<std::int64_t>(), {2, true});
    for (std::size_t card = 0; card < 2; ++card) {
      const double measured = row["peak_allocated"][card];
      const double error = std::abs(static_cast<double>(trial.probe.cards[card].peak) - measured) / measured;
      largest = std::max(largest, error);
      EXPECT_LE(error, 0.03) << row["split"] << " batch " << row["batch"] << " card " << card << ": "
                             << trial.probe.cards[card].peak << " for " << measured;
      ++points;
    }
  }
  EXPECT_EQ(points, 52U);
  RecordProperty("largest_error", std::to_string(largest));
}

// Each card may use 1.8 % of its 79 GiB, which is 1.53 GB. By what was measured the second card of the uneven
// split uses 1.42 GB at 64 samples and 1.94 GB at 96; the sum of both limits is reached later.
TEST_F(TwoCards, TheSumOvershootsOnTheUnevenSplitAndTheFullestCardDoesNot) {
  const double share = 0.018;
  const double limit = share * static_cast<double>(truth["total_memory"][1].get<Bytes>());
  const auto found = [&](const std::string& split_name, const char* cards) {
    const LayerSplit parts = split(split_name);
    const auto searcher = builtin_policies()->searchers.make(
        {.use = "binsearch",
         .profile = "repaired",
         .options = {{"cards", cards, {}}, {"reduction", 1.0, {}}, {"safety_margin", share, {}}},
         .where = {}});
    return run_batch_search(search(parts, truth["total_memory"][0]), *searcher).answer.batch;
  };
  // Measured peaks on straight lines between the rows.
  const auto measured = [&](const std::string& split_name, std::int64_t batch, std::size_t card) {
    double below_batch = 0;
    double below = 0;
    for (const Json& row : truth["rows"]) {
      if (row["split"] != split_name) continue;
      const double at = row["batch"];
      const double peak = row["peak_allocated"][card];
      const auto wanted = static_cast<double>(batch);
      if (at >= wanted) return below + (peak - below) * (wanted - below_batch) / (at - below_batch);
      below_batch = at;
      below = peak;
    }
    return HUGE_VAL;
  };
  const std::int64_t fullest = found("uneven", "fullest");
  EXPECT_LE(measured("uneven", fullest, 1), limit);
  EXPECT_GT(measured("uneven", fullest + 4, 1), limit);  // and it leaves little
  const std::int64_t summed = found("uneven", "sum");
  EXPECT_GT(summed, fullest);
  EXPECT_GT(measured("uneven", summed, 1), 1.2 * limit);
  EXPECT_LE(measured("uneven", summed, 0) + measured("uneven", summed, 1), 2 * limit);  // it looked good
}

TEST_F(TwoCards, RefusesWhatItCannotSplit) {
  EXPECT_THROW(LayerSplit(*model, {6, 7}), InputError);  // not 13 layers
  EXPECT_THROW(LayerSplit(*model, {12}), InputError);
  const auto trained = load_model_file(kSource + "/models/gpt2.json");
  EXPECT_THROW(LayerSplit(dynamic_cast<const RecordedModel&>(*trained), {6, 6}), InputError);
}

// Each half of the time, and every byte of the weights on one card or the other.
TEST_F(TwoCards, TheCardsShareTimeAndWeights) {
  const LayerSplit even = split("even");
  EXPECT_EQ(even.cards(), 2U);
  const auto bytes = [](const StepProgram& program) {
    Bytes sum = 0;
    for (const MemoryOp& op : program.ops) sum += op.size;
    return sum;
  };
  EXPECT_EQ(bytes(even.on_card(0).build()) + bytes(even.on_card(1).build()), bytes(model->build()));
  const SimTime whole = model->step(point(8)).duration;
  EXPECT_NEAR(to_seconds(even.on_card(0).step(point(8)).duration), to_seconds(whole) / 2, 1e-6);
}

}  // namespace
}  // namespace vramlab
