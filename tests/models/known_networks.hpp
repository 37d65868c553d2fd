// Networks whose steps were recorded or whose parameters are published, as their config.json has them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lab/model/network_config.hpp"
#include "models/layers/layers_model.hpp"

namespace vramlab::known {

/// The decoder of ../shared/programs/llama.config.json.
inline const std::string kDecoder = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 12, "num_attention_heads": 16,
  "num_key_value_heads": 4, "vocab_size": 32000, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "use_cache": false})";

/// The one that generates in ../shared/programs/programs_h100.py.
inline const std::string kGenerator = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 12, "num_attention_heads": 16,
  "num_key_value_heads": 16, "vocab_size": 32000, "torch_dtype": "float16"})";

/// transformers' defaults.
inline const std::string kGpt2 = R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"})";
inline const std::string kBert = R"({"architectures": ["BertForMaskedLM"], "model_type": "bert"})";

/// The vision transformer of programs_h200.py, which is torch's and not transformers', in these terms.
inline const std::string kVision = R"({"architectures": ["ViTForImageClassification"], "model_type": "vit",
  "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "intermediate_size": 2048,
  "image_size": 320, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "num_labels": 1000})";

inline layers::LayersModel model_of(const std::string& config, const layers::RunSpec& run) {
  const NetworkConfig read = read_network_config(parse_json(config, "config.json"), "config.json: ");
  layers::LayersSpec spec;
  spec.name = "known";
  spec.network = read.network;
  spec.run = run;
  for (const std::string& name : layers::parameter_names(spec.network, run.task)) {
    const std::int64_t low = name == "px" ? spec.network.patch_size : 1;
    spec.parameters.push_back(
        {name, low, std::min<std::int64_t>(4096, layers::largest_simulated(spec.network, run))});
    spec.usual.push_back(1);
  }
  return layers::LayersModel(std::move(spec));
}

}  // namespace vramlab::known
