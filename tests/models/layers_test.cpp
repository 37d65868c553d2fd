// Networks by their layers: parameters, laws of kernels, and the tape that records a step.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/laws.hpp"
#include "tests/models/known_networks.hpp"

namespace vramlab::layers {
namespace {

std::int64_t parameters_of(const std::string& config) {
  return known::model_of(config, {}).network_parameters();
}

// 2 · 32,000 · 1024 for the embedding and the head; in each of 12 layers 2 · 1024² + 2 · 1024 · 256 for
// attention, 3 · 1024 · 2816 for the feed-forward layer and two norms; the last norm. As counted on the card
// (../shared/data/README.md).
TEST(Layers, DecoderHasTheParametersOfItsRecording) {
  EXPECT_EQ(65'536'000 + 12 * (2'097'152 + 524'288 + 8'650'752 + 2'048) + 1'024, 200'827'904);
  EXPECT_EQ(parameters_of(known::kDecoder), 200'827'904);
}

// As published with the weights on the Hugging Face hub.
TEST(Layers, PublishedNetworksHaveTheirParameters) {
  EXPECT_EQ(parameters_of(known::kGpt2), 124'439'808);
  EXPECT_EQ(parameters_of(R"({"model_type": "bert", "architectures": ["BertModel"]})"), 109'482'240);
  EXPECT_EQ(parameters_of(R"({"model_type": "vit", "num_labels": 1000})"), 86'567'656);
  EXPECT_EQ(parameters_of(R"({"model_type": "t5"})"), 60'506'624);
  EXPECT_EQ(parameters_of(R"({"model_type": "llama"})"), 6'738'415'616);
  EXPECT_EQ(parameters_of(R"({"model_type": "mistral"})"), 7'241'732'096);
  EXPECT_EQ(parameters_of(R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064})"),
            7'615'616'512);
}

// Two matrices, 4096 · 16 each, beside the queries and the values of 32 layers.
TEST(Layers, AdaptersAloneAreTrained) {
  const LayersModel model = known::model_of(R"({"model_type": "llama"})", {.adapter_rank = 16});
  EXPECT_EQ(model.trained_parameters(), 32 * 2 * 2 * 4096 * 16);
  EXPECT_EQ(model.network_parameters(), 6'738'415'616 + 8'388'608);
}

// Sizes in the recordings llama (8, 384), gpt2_fit (8, 128) and vit (8, 224 px): a weight of a norm, biases.
TEST(Layers, ColumnSumsTakeWhatWasRecorded) {
  const CardLaws card;
  const auto sizes = [&](std::int64_t rows, std::int64_t columns) {
    const ReductionBuffers buffers = column_sum(rows, columns, card);
    return std::pair{buffers.partial_sums, buffers.counters};
  };
  EXPECT_EQ(sizes(3072, 1024), (std::pair<Bytes, Bytes>{25'165'824, 32}));
  EXPECT_EQ(sizes(1024, 768), (std::pair<Bytes, Bytes>{6'291'456, 24}));
  EXPECT_EQ(sizes(1024, 2304), (std::pair<Bytes, Bytes>{18'874'368, 72}));
  EXPECT_EQ(sizes(1568, 512), (std::pair<Bytes, Bytes>{6'553'600, 16}));
  EXPECT_EQ(sizes(1024, 30522), (std::pair<Bytes, Bytes>{0, 0}));
  EXPECT_EQ(sizes(256, 768), (std::pair<Bytes, Bytes>{0, 0}));
}

// llama (8, 384) with grouped queries, gpt2_fit (8, 128), vit (8, 224 px); bert_fit (4, 256) and (8, 192).
TEST(Layers, AttentionTakesWhatWasRecorded) {
  EXPECT_EQ(half_attention_workspace({8, 384, 384, 16, 4, 64}), 25'362'688u);
  EXPECT_EQ(half_attention_workspace({8, 128, 128, 12, 12, 64}), 3'195'136u);
  EXPECT_EQ(half_attention_workspace({8, 196, 196, 8, 8, 64}), 3'261'696u);
  EXPECT_EQ(single_attention_workspace({4, 256, 256, 12, 12, 64}), 3'148'800u);
  EXPECT_EQ(single_attention_workspace({8, 192, 192, 12, 12, 64}), 4'723'200u);
}

// What a step leaves is what the next one frees or keeps: each of its own tensors is freed exactly once.
TEST(Layers, StepsFreeWhatTheyAllocate) {
  const std::vector<std::pair<std::string, RunSpec>> cases{
      {known::kDecoder, {.weights = Number::bfloat16, .optimizer = Optimizer::adamw_fused}},
      {known::kDecoder, {.weights = Number::bfloat16, .recompute_every = 2}},
      {known::kDecoder, {.weights = Number::bfloat16, .adapter_rank = 8}},
      {known::kDecoder, {.autocast = MixedPrecision::bfloat16, .shards = 4}},
      {known::kDecoder, {.recompute_every = 1, .shards = 2, .adapter_rank = 4}},
      {known::kGpt2, {.autocast = MixedPrecision::bfloat16, .micro_batch = 1}},
      {known::kBert, {.optimizer = Optimizer::adamw_8bit}},
      {R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"]})", {}},
      {known::kVision, {.optimizer = Optimizer::sgd_momentum, .recompute_every = 1}},
      {R"({"model_type": "t5", "feed_forward_proj": "gated-gelu"})", {.recompute_every = 1}},
      {R"({"model_type": "t5"})", {.weights = Number::bfloat16, .shards = 2}},
      {known::kGenerator, {.task = Task::generation, .weights = Number::float16}},
      {known::kGpt2, {.task = Task::forward}},
  };
  for (const auto& [config, run] : cases) {
    const LayersModel model = known::model_of(config, run);
    Point point;
    for (const Parameter& one : model.parameters().parameters) point.push_back(one.name == "px" ? 64 : 3);
    const StepProgram step = model.step(point);
    std::vector<int> live(step.slots, 0);
    for (const MemoryOp& op : step.ops) {
      if (op.slot < step.persistent_slots) continue;
      live[op.slot] += op.kind == MemoryOpKind::free ? -1 : 1;
      ASSERT_TRUE(live[op.slot] == 0 || live[op.slot] == 1) << config;
    }
    EXPECT_THAT(live, testing::Each(0)) << config;
    std::size_t gradients = 0;
    for (const MemoryOp& op : step.ops) {
      gradients += op.slot < step.persistent_slots && op.kind == MemoryOpKind::allocate ? 1 : 0;
    }
    EXPECT_EQ(gradients > 0, run.task == Task::training) << config;
  }
}

// Every trained weight gets a gradient: 111 in the decoder (nine in each of 12 layers and three), 148 in
// GPT-2 and 202 in BERT, as many as the recordings of these programs keep from step to step.
TEST(Layers, EveryWeightGetsAGradient) {
  const auto gradients = [](const std::string& config) {
    const StepProgram step = known::model_of(config, {}).step({2, 64});
    return std::count_if(step.ops.begin(), step.ops.end(), [&](const MemoryOp& op) {
      return op.slot < step.persistent_slots && op.kind == MemoryOpKind::allocate;
    });
  };
  EXPECT_EQ(gradients(known::kDecoder), 111);
  EXPECT_EQ(gradients(known::kGpt2), 148);
  EXPECT_EQ(gradients(known::kBert), 202);
}

// A sum that leaves what 62 bits hold fits on no card, and is no error.
TEST(Layers, SizesBeyondAllCardsStayNumbers) {
  EXPECT_EQ(product({std::int64_t{1} << 40, std::int64_t{1} << 40}), std::int64_t{1} << 59);
  EXPECT_EQ(product({0, std::int64_t{1} << 62, 8}), 0);
}

}  // namespace
}  // namespace vramlab::layers
