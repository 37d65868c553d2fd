#include "lab/model/network_config.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

using layers::Activation;
using layers::Architecture;
using layers::Family;
using layers::Head;
using layers::NetworkSpec;
using Count = std::int64_t NetworkSpec::*;
using Flag = bool NetworkSpec::*;

constexpr std::int64_t kMost = 10'000'000;

/// A whole number of a config.json; `otherwise` is the default of transformers' configuration class.
struct CountKey {
  const char* key;
  Count member;
  std::int64_t otherwise;
};
struct FlagKey {
  const char* key;
  Flag member;
  bool otherwise;
};
/// A share; what counts is whether it is above nought.
struct RateKey {
  const char* key;
  std::vector<Flag> members;
  double otherwise;
};

/// Keys of one architecture.
struct Keys {
  std::vector<CountKey> counts;
  std::vector<FlagKey> flags;
  std::vector<RateKey> rates;
  const char* activation;
  const char* otherwise;
};

using N = NetworkSpec;

Keys llama_keys() {
  return {{{"hidden_size", &N::hidden, 4096},
           {"num_hidden_layers", &N::layers, 32},
           {"num_attention_heads", &N::heads, 32},
           {"intermediate_size", &N::intermediate, 11008},
           {"vocab_size", &N::vocabulary, 32000},
           {"max_position_embeddings", &N::positions, 2048}},
          {{"tie_word_embeddings", &N::tied, false},
           {"attention_bias", &N::attention_bias, false},
           {"mlp_bias", &N::feed_forward_bias, false},
           {"use_cache", &N::cache, true}},
          {{"attention_dropout", {&N::attention_dropout}, 0.0}},
          "hidden_act",
          "silu"};
}

Keys mistral_keys() {
  Keys keys = llama_keys();
  keys.counts[3].otherwise = 14336;
  keys.counts[5].otherwise = 131072;
  keys.flags = {{"tie_word_embeddings", &N::tied, false}, {"use_cache", &N::cache, true}};
  return keys;
}

Keys qwen2_keys() {
  Keys keys = mistral_keys();
  keys.counts[3].otherwise = 22016;
  keys.counts[4].otherwise = 151936;
  keys.counts[5].otherwise = 32768;
  return keys;
}

Keys gpt2_keys() {
  return {{{"n_embd", &N::hidden, 768},
           {"n_layer", &N::layers, 12},
           {"n_head", &N::heads, 12},
           {"vocab_size", &N::vocabulary, 50257},
           {"n_positions", &N::positions, 1024}},
          {{"tie_word_embeddings", &N::tied, true}, {"use_cache", &N::cache, true}},
          {{"embd_pdrop", {&N::embedding_dropout}, 0.1},
           {"attn_pdrop", {&N::attention_dropout}, 0.1},
           {"resid_pdrop", {&N::hidden_dropout}, 0.1}},
          "activation_function",
          "gelu_new"};
}

Keys bert_keys() {
  return {{{"hidden_size", &N::hidden, 768},
           {"num_hidden_layers", &N::layers, 12},
           {"num_attention_heads", &N::heads, 12},
           {"intermediate_size", &N::intermediate, 3072},
           {"vocab_size", &N::vocabulary, 30522},
           {"max_position_embeddings", &N::positions, 512},
           {"type_vocab_size", &N::token_types, 2}},
          {{"tie_word_embeddings", &N::tied, true}},
          {{"hidden_dropout_prob", {&N::hidden_dropout, &N::embedding_dropout}, 0.1},
           {"attention_probs_dropout_prob", {&N::attention_dropout}, 0.1}},
          "hidden_act",
          "gelu"};
}

Keys vit_keys() {
  return {{{"hidden_size", &N::hidden, 768},
           {"num_hidden_layers", &N::layers, 12},
           {"num_attention_heads", &N::heads, 12},
           {"intermediate_size", &N::intermediate, 3072},
           {"image_size", &N::image_size, 224},
           {"patch_size", &N::patch_size, 16},
           {"num_channels", &N::image_channels, 3}},
          {{"qkv_bias", &N::attention_bias, true}},
          {{"hidden_dropout_prob", {&N::hidden_dropout, &N::embedding_dropout}, 0.0},
           {"attention_probs_dropout_prob", {&N::attention_dropout}, 0.0}},
          "hidden_act",
          "gelu"};
}

Keys t5_keys() {
  return {{{"d_model", &N::hidden, 512},
           {"num_layers", &N::layers, 6},
           {"num_heads", &N::heads, 8},
           {"d_kv", &N::head_size, 64},
           {"d_ff", &N::intermediate, 2048},
           {"vocab_size", &N::vocabulary, 32128},
           {"relative_attention_num_buckets", &N::buckets, 32}},
          {{"tie_word_embeddings", &N::tied, true}},
          {{"dropout_rate", {&N::hidden_dropout, &N::attention_dropout, &N::embedding_dropout}, 0.1}},
          "feed_forward_proj",
          "relu"};
}

Keys keys_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::mistral:
      return mistral_keys();
    case Architecture::qwen2:
      return qwen2_keys();
    case Architecture::gpt2:
      return gpt2_keys();
    case Architecture::bert:
      return bert_keys();
    case Architecture::vit:
      return vit_keys();
    case Architecture::t5:
      return t5_keys();
    case Architecture::llama:
      break;
  }
  return llama_keys();
}

const std::vector<std::pair<std::string, Activation>>& activations() {
  static const std::vector<std::pair<std::string, Activation>> names{
      {"silu", Activation::silu},          {"swish", Activation::silu},
      {"relu", Activation::relu},          {"gelu", Activation::gelu},
      {"gelu_new", Activation::gelu_new},  {"gelu_pytorch_tanh", Activation::gelu},
      {"gelu_fast", Activation::gelu_new}, {"quick_gelu", Activation::quick_gelu},
      {"tanh", Activation::tanh}};
  return names;
}

class ConfigReader {
 public:
  ConfigReader(const Json& json, const std::string& where) : json_(json), where_(where) {}

  NetworkConfig read() {
    if (!json_.is_object()) throw InputError(where_ + "/", "a config.json is an object in { }.");
    read_architecture();
    const Keys keys = keys_of(n().architecture);
    for (const CountKey& key : keys.counts) n().*key.member = count(key.key, key.otherwise);
    for (const FlagKey& key : keys.flags) n().*key.member = flag(key.key, key.otherwise);
    for (const RateKey& key : keys.rates) {
      const bool drops = rate(key.key, key.otherwise) > 0;
      for (const Flag member : key.members) n().*member = drops;
    }
    read_activation(keys);
    read_derived();
    read_head();
    read_number();
    if (json_.contains("quantization_config") && !json_["quantization_config"].is_null()) {
      problem("/quantization_config",
              "layers with quantised weights are not known. Remove it to estimate the "
              "network with whole weights.");
    }
    if (!problems_.empty()) throw InputError(std::move(problems_));
    return std::move(config_);
  }

 private:
  NetworkSpec& n() { return config_.network; }

  void problem(const std::string& pointer, const std::string& what) {
    problems_.push_back({where_ + pointer, what});
  }

  [[nodiscard]] bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }

  void read_architecture() {
    const auto& known = layers::kArchitectures;
    if (!json_.contains("model_type") || !json_["model_type"].is_string()) {
      throw InputError(where_ + "/model_type",
                       "is missing: the name of an architecture." + suggest_name("", known));
    }
    const auto name = json_["model_type"].get<std::string>();
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      throw InputError(where_ + "/model_type",
                       '"' + name + "\" is not an architecture whose layers are known." + nearest(name));
    }
    n().architecture = static_cast<Architecture>(found - known.begin());
  }

  // By its name, else by what its figures are called like.
  [[nodiscard]] std::string nearest(const std::string& name) const {
    const char* alike = json_.contains("d_kv") || json_.contains("decoder_layers") ? "t5"
                        : json_.contains("patch_size")                             ? "vit"
                        : json_.contains("type_vocab_size")                        ? "bert"
                        : json_.contains("n_embd")                                 ? "gpt2"
                                                                                   : "llama";
    return fmt::format(
        "{} By its keys the nearest is \"{}\": with that model_type its figures are taken for those "
        "of such a network.",
        suggest_name(name, layers::kArchitectures), alike);
  }

  std::int64_t count(const char* key, std::int64_t otherwise) {
    if (!has(key)) return left_out(key, otherwise);
    return number_of(json_[key], std::string("/") + key);
  }

  std::int64_t left_out(const char* key, std::int64_t value) {
    config_.defaults.push_back(fmt::format("{} {}", key, value));
    return value;
  }

  std::int64_t number_of(const Json& value, const std::string& pointer) {
    const std::int64_t number =
        value.is_number_integer() ? value.get<std::int64_t>() : 0;  // above 2^63: negative
    if (number >= 1 && number <= kMost) return number;
    problem(pointer, fmt::format("{} is not a whole number of 1 to {}.", value.dump(), kMost));
    return 1;
  }

  bool flag(const char* key, bool otherwise) {
    if (!has(key)) return otherwise;
    if (json_[key].is_boolean()) return json_[key].get<bool>();
    problem(std::string("/") + key, json_[key].dump() + " is neither true nor false.");
    return otherwise;
  }

  double rate(const char* key, double otherwise) {
    if (!has(key)) return otherwise;
    const double share = json_[key].is_number() ? json_[key].get<double>() : -1;
    if (share >= 0 && share <= 1) return share;
    problem(std::string("/") + key, json_[key].dump() + " is not a share of 0 to 1.");
    return otherwise;
  }

  void read_activation(const Keys& keys) {
    std::string name = keys.otherwise;
    const std::string pointer = std::string("/") + keys.activation;
    if (has(keys.activation)) {
      if (!json_[keys.activation].is_string()) return problem(pointer, "is not the name of a function.");
      name = json_[keys.activation].get<std::string>();
    }
    constexpr std::string_view kGated = "gated-";
    if (n().architecture == Architecture::t5 && name.starts_with(kGated)) {
      n().gated = true;
      name = name == "gated-gelu" ? "gelu_new" : name.substr(kGated.size());
    }
    std::vector<std::string> names;
    for (const auto& [known, activation] : activations()) {
      names.push_back(known);
      if (known != name) continue;
      n().activation = activation;
      return;
    }
    problem(pointer, '"' + name + "\" is not a function that is known." + suggest_name(name, names));
  }

  // What follows from other figures, unless it is given.
  void read_derived() {
    NetworkSpec& network = n();
    const Family family = layers::family_of(network.architecture);
    const bool llama = family == Family::decoder && network.architecture != Architecture::gpt2;
    if (network.architecture == Architecture::gpt2) {
      network.intermediate = has("n_inner") ? count("n_inner", 1) : 4 * network.hidden;
    }
    network.kv_heads = network.heads;
    if (llama) {
      const std::int64_t otherwise = network.architecture == Architecture::mistral ? 8 : network.heads;
      network.kv_heads = count("num_key_value_heads", otherwise);
      network.gated = true;
    }
    if (family == Family::encoder_decoder) {
      network.decoder_layers = has("num_decoder_layers") ? count("num_decoder_layers", 1) : network.layers;
      return;
    }
    if (llama && has("head_dim")) {
      network.head_size = count("head_dim", 1);
    } else if (network.hidden % network.heads == 0) {
      network.head_size = network.hidden / network.heads;
    } else if (problems_.empty()) {
      problem("/", fmt::format("{} heads do not divide the {} numbers of a position.", network.heads,
                               network.hidden));
    }
    read_biases(family);
  }

  void read_biases(Family family) {
    NetworkSpec& network = n();
    if (network.architecture == Architecture::qwen2) network.attention_bias = true;
    if (network.architecture == Architecture::llama) network.output_bias = network.attention_bias;
    const bool all =
        network.architecture == Architecture::gpt2 || family == Family::encoder || family == Family::vision;
    if (!all) return;
    if (family != Family::vision) network.attention_bias = true;
    network.output_bias = true;
    network.feed_forward_bias = true;
  }

  // The class of the network, as in "LlamaForCausalLM".
  void read_head() {
    const Family family = layers::family_of(n().architecture);
    std::string name;
    if (has("architectures")) {
      const Json& classes = json_["architectures"];
      if (!classes.is_array() || classes.empty() || !classes[0].is_string()) {
        return problem("/architectures", "is not a list of names.");
      }
      name = classes[0].get<std::string>();
    }
    const auto ends = [&](std::string_view word) { return name.ends_with(word); };
    if (ends("ForSequenceClassification") || ends("ForImageClassification")) {
      if (family == Family::decoder || family == Family::encoder_decoder) {
        return problem("/architectures/0",
                       name + " is not known. Write a language model, or the network alone.");
      }
      n().head = Head::classes;
    } else if (ends("ForMaskedLM") || ends("ForPreTraining")) {
      n().head = Head::masked_language_model;
    } else if (ends("Model") && !ends("LMHeadModel")) {
      n().head = Head::none;
    } else {
      n().head = family == Family::encoder  ? Head::masked_language_model
                 : family == Family::vision ? Head::classes
                                            : Head::language_model;
    }
    if (n().head == Head::classes) read_labels();
  }

  void read_labels() {
    constexpr std::int64_t kLabels = 2;
    if (has("id2label") && json_["id2label"].is_object() && !json_["id2label"].empty()) {
      n().labels = static_cast<std::int64_t>(json_["id2label"].size());
    } else {
      n().labels = count("num_labels", kLabels);
    }
  }

  void read_number() {
    const char* key = has("dtype") ? "dtype" : "torch_dtype";
    if (!has(key)) return;
    const std::string pointer = std::string("/") + key;
    const auto name = json_[key].is_string() ? json_[key].get<std::string>() : json_[key].dump();
    const auto& names = layers::kNumbers;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return problem(pointer,
                     '"' + name + "\" is not a number that weights are kept in." + suggest_name(name, names));
    }
    config_.number = static_cast<layers::Number>(found - names.begin());
  }

  const Json& json_;
  const std::string where_;
  NetworkConfig config_;
  std::vector<Problem> problems_;
};

}  // namespace

NetworkConfig read_network_config(const Json& json, const std::string& where) {
  return ConfigReader(json, where).read();
}

}  // namespace vramlab
