// vramlab estimate --config on the command line, and what takes the model that it writes.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/units.hpp"
#include "lab/json.hpp"
#include "tests/cli/program_run.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

// The decoder of ../shared/programs/llama.config.json: 200,827,904 parameters.
constexpr const char* kDecoder = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 12, "num_attention_heads": 16,
  "num_key_value_heads": 4, "vocab_size": 32000, "torch_dtype": "bfloat16", "use_cache": false})";

class EstimateConfigTest : public testing::Test {
 protected:
  EstimateConfigTest() { write("config.json", kDecoder); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream{folder.file(name)} << text;
  }
  Ran run(const std::string& arguments) const { return run_program(arguments, folder); }
  Json estimate(const std::string& options) const {
    const Ran ran = run("estimate --config config.json --json - --quiet " + options);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.code == 0 ? Json::parse(ran.out) : Json();
  }
  static Bytes part(const Json& json, const std::string& name) {
    for (const Json& one : json["parts"]) {
      if (one["name"] == name) return one["bytes"];
    }
    return 0;
  }
  static std::string how(const Json& json, const std::string& name) {
    for (const Json& one : json["parts"]) {
      if (one["name"] == name) return one["how"];
    }
    return "";
  }

  ScratchFolder folder;
};

// Two bytes a number; 111 tensors, of which 25 have 2,048 bytes, and two buffers of 128 bytes in blocks of
// 512.
TEST_F(EstimateConfigTest, WeightsGradientsAndStatesFollowFromTheFigures) {
  const Json json = estimate("--batch 4 --seq 256");
  EXPECT_EQ(json["network_parameters"], 200'827'904);
  EXPECT_EQ(json["made_without_card"], true);
  EXPECT_EQ(part(json, "weights"), 2 * 200'827'904u + 2 * 512u);
  EXPECT_EQ(part(json, "gradients"), 2 * 200'827'904u);
  EXPECT_EQ(part(json, "optimizer state"), 2 * 2 * 200'827'904u);
  EXPECT_EQ(part(json, "workspaces of libraries"), 2 * 32_MiB);
}

// What is reserved and what lies outside is all that there is, to the byte.
TEST_F(EstimateConfigTest, PartsAddUpToThePeak) {
  for (const char* options :
       {"--batch 8 --seq 384", "--batch 2 --seq 128 --dtype fp32 --autocast bf16 --shard 4",
        "--generate 8 --batch 16", "--adapter rank=8", "--recompute every=2 --gpu l4-24gb"}) {
    const Json json = estimate(options);
    Bytes sum = 0;
    for (const Json& one : json["parts"]) sum += one["bytes"].get<Bytes>();
    EXPECT_EQ(sum, json["peak_reserved_bytes"].get<Bytes>() + 552'402'944u) << options;
    EXPECT_LE(json["peak_allocated_bytes"].get<Bytes>(), json["peak_reserved_bytes"].get<Bytes>());
  }
}

TEST_F(EstimateConfigTest, EveryPartSaysHowItIsKnown) {
  const Json on_h100 = estimate("");
  EXPECT_EQ(how(on_h100, "CUDA context, outside the allocator"), "measured");
  EXPECT_EQ(how(on_h100, "workspaces of libraries"), "law");
  const Json elsewhere = estimate("--gpu l4-24gb --optimizer adamw-8bit");
  EXPECT_EQ(how(elsewhere, "CUDA context, outside the allocator"), "assumed");
  EXPECT_EQ(how(elsewhere, "workspaces of libraries"), "assumed");
  EXPECT_EQ(how(elsewhere, "optimizer state"), "assumed");
  EXPECT_EQ(how(elsewhere, "activations"), "law");
}

// Measured at (8, 384): 4,322,115,584 bytes, in tests/data/grids; at (2, 128) 1,756,374,528.
TEST_F(EstimateConfigTest, ModelAnswersAtOtherBatchesAndFindsTheLargest) {
  ASSERT_EQ(run("estimate --config config.json --optimizer adamw-fused -o decoder.json").code, 0);
  const Ran ran = run("predict decoder.json --set batch=2 --set seq=128 --json - --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json direct = estimate("--batch 2 --seq 128 --optimizer adamw-fused");
  EXPECT_EQ(Json::parse(ran.out)["peak_allocated_bytes"], direct["peak_allocated_bytes"]);
  EXPECT_EQ(Json::parse(ran.out)["step_seconds"], nullptr);
  const Ran usual = run("predict decoder.json --json - --quiet");
  EXPECT_EQ(Json::parse(usual.out)["parameters"], (Json{{"batch", 8}, {"seq", 512}}));
  const Ran largest = run("predict decoder.json --largest batch --gpu l4-24gb --json - --quiet");
  ASSERT_EQ(largest.code, 0) << largest.err;
  EXPECT_EQ(Json::parse(largest.out)["largest"]["ends_at"], "memory");
}

TEST_F(EstimateConfigTest, ScenariosTakeTheModel) {
  ASSERT_EQ(run("estimate --config config.json -o decoder.json").code, 0);
  write("small.json", R"({"version": 1, "kind": "training", "name": "small", "objective": "samples_per_s",
    "device": {"gpu": "l4-24gb"}, "target": {"usage": 0.85, "margin": 0.05},
    "workload": {"model": "decoder.json", "iterations": 20, "start": {"batch": 2, "seq": 256},
                 "bounds": {"batch": [1, 16], "seq": [256, 256]}},
    "policies": [{"use": "fixed"}, {"use": "threshold-step", "step": 2}]})");
  const Ran compared = run("compare small.json");
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("The model's steps were never timed"));
  write("search.json", R"({"version": 1, "kind": "search", "name": "search", "device": {"gpu": "l4-24gb"},
    "workload": {"model": "decoder.json", "start": {"seq": 512}}, "policies": [{"use": "doubling-bisect"}]})");
  const Ran found = run("find-batch search.json");
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("Batch "));
}

TEST_F(EstimateConfigTest, OptionsThatDoNotGoTogetherAreRefused) {
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    const Ran ran = run("estimate " + arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_THAT(ran.err, HasSubstr(text)) << arguments;
  };
  refused("--config config.json --type cnn", "give one of --config");
  refused("--type cnn --shard 2", "--shard: goes with --config.");
  refused("--config config.json --recompute 2", "Write every=1.");
  refused("--config config.json --adapter rank=0", "Write rank=1.");
  refused("--config config.json --generate 4 --optimizer sgd", "--optimizer: goes with training");
  refused("--config config.json --dtype fp8", "Known: fp32, bf16, fp16");
  refused("--config config.json --dtype bf16 --autocast bf16", "mixed precision keeps weights in float32");
  refused("--config config.json --optimizer adamwfused", "Did you mean \"adamw-fused\"?");
  refused("--config config.json --batch 0", "--batch: 0 is out of range. Allowed: 1 to 4096.");
  refused("--config config.json --generate 4 --shard 2", "shards are known in training only");
  refused("--config config.json -o config.json", "config.json");
}

TEST_F(EstimateConfigTest, ConfigsSayWhereTheyAreWrong) {
  write("bad.json", R"({"model_type": "llama", "hidden_size": "wide", "vocab_size": 0, "attention_dropout": 2,
    "hidden_act": "geluu", "use_cache": 1, "torch_dtype": "int4", "quantization_config": {}})");
  const Ran bad = run("estimate --config bad.json");
  EXPECT_EQ(bad.code, 2);
  for (const char* text :
       {"bad.json: /hidden_size: \"wide\" is not a whole number of 1 to 10000000.", "/vocab_size: 0 is not",
        "/attention_dropout: 2 is not a share of 0 to 1.",
        "/hidden_act: \"geluu\" is not a function that is known. "
        "Did you mean \"gelu\"?",
        "/use_cache: 1 is neither true nor false.", "/torch_dtype: \"int4\"", "/quantization_config: "}) {
    EXPECT_THAT(bad.err, HasSubstr(text));
  }
  write("other.json", R"({"model_type": "gpt_neo", "n_embd": 768})");
  const Ran other = run("estimate --config other.json");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("\"gpt_neo\" is not an architecture whose layers are known."));
  EXPECT_THAT(other.err, HasSubstr("the nearest is \"gpt2\""));
  write("none.json", R"({"hidden_size": 768})");
  EXPECT_THAT(run("estimate --config none.json").err, HasSubstr("/model_type: is missing"));
}

TEST_F(EstimateConfigTest, DamagedModelsSayWhere) {
  ASSERT_EQ(run("estimate --config config.json -o decoder.json").code, 0);
  Json model = read_json_file(folder.file("decoder.json"));
  model["network"]["kv_heads"] = 3;
  model["parameters"].erase("seq");
  model["parameters"]["px"] = {1, 2};
  model["at"] = {{"batch", 5000}};
  write("decoder.json", model.dump());
  const Ran ran = run("predict decoder.json");
  EXPECT_EQ(ran.code, 2);
  for (const char* text :
       {"/network/kv_heads: 3 does not divide the 16 heads.", "/parameters: \"seq\" is missing",
        "/parameters/px: steps of this network do not depend on it.",
        "/at/batch: 5000 is outside the range"}) {
    EXPECT_THAT(ran.err, HasSubstr(text));
  }
}

}  // namespace
}  // namespace vramlab
