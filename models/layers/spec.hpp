// What a network in training or at work is made of, as its config.json and the options of a run say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/parameter_space.hpp"
#include "models/layers/kernels.hpp"

namespace vramlab::layers {

/// Networks whose layers are known. What they share is in `Family`.
enum class Architecture : std::uint8_t { llama, mistral, qwen2, gpt2, bert, vit, t5 };
inline const std::vector<std::string> kArchitectures{"llama", "mistral", "qwen2", "gpt2",
                                                     "bert",  "vit",     "t5"};

enum class Family : std::uint8_t { decoder, encoder, vision, encoder_decoder };
Family family_of(Architecture architecture);

/// What stands on the last layer. `none`: the mean of what comes out is the loss.
enum class Head : std::uint8_t { language_model, masked_language_model, classes, none };
inline const std::vector<std::string> kHeads{"language-model", "masked-language-model", "classes", "none"};

/// Figures of a network. Those that an architecture has no use for are 0.
struct NetworkSpec {
  Architecture architecture = Architecture::llama;
  Head head = Head::language_model;
  std::int64_t hidden = 1;  ///< numbers of a position between layers
  std::int64_t layers = 1;  ///< of an encoder and decoder: of its encoder
  std::int64_t decoder_layers = 0;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  ///< heads of keys and values; as `heads` without grouped queries
  std::int64_t head_size = 1;
  std::int64_t intermediate = 1;  ///< numbers of a position inside a feed-forward layer
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  ///< learnt ones, or the longest that the network is meant for
  std::int64_t token_types = 0;
  std::int64_t labels = 0;      ///< of the head `classes`
  std::int64_t image_size = 0;  ///< pixels a side
  std::int64_t patch_size = 0;
  std::int64_t image_channels = 0;
  std::int64_t buckets = 0;  ///< of relative positions
  Activation activation = Activation::silu;
  bool gated = false;           ///< feed-forward layers multiply two projections
  bool tied = false;            ///< the head's matrix is that of the embedding
  bool attention_bias = false;  ///< of the projections to queries, keys and values
  bool output_bias = false;     ///< of the projection behind attention
  bool feed_forward_bias = false;
  bool embedding_dropout = false;
  bool attention_dropout = false;
  bool hidden_dropout = false;
  bool cache = false;  ///< a training step copies keys and values into a cache, too

  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

enum class Task : std::uint8_t { training, generation, forward };
inline const std::vector<std::string> kTasks{"training", "generation", "forward"};

enum class Optimizer : std::uint8_t { adamw, adamw_fused, adamw_8bit, adam, sgd, sgd_momentum };
inline const std::vector<std::string> kOptimizers{"adamw", "adamw-fused", "adamw-8bit",
                                                  "adam",  "sgd",         "sgd-momentum"};

inline const std::vector<std::string> kNumbers{"float32", "bfloat16", "float16"};

enum class MixedPrecision : std::uint8_t { none, bfloat16, float16 };
inline const std::vector<std::string> kMixedPrecisions{"none", "bfloat16", "float16"};

/// When gradients of the step before are freed.
enum class ZeroGradients : std::uint8_t { before_backward, before_forward };
inline const std::vector<std::string> kZeroGradients{"before-backward", "before-forward"};

/// How it runs.
struct RunSpec {
  Task task = Task::training;
  Number weights = Number::float32;
  MixedPrecision autocast = MixedPrecision::none;
  Optimizer optimizer = Optimizer::adamw;
  ZeroGradients zero_gradients = ZeroGradients::before_backward;
  std::int64_t recompute_every = 0;  ///< of every so many layers the first is recomputed; 0 = none
  std::int64_t micro_batch = 0;      ///< rows of a part whose gradients add up; 0 = the batch is one part
  std::int64_t shards = 1;           ///< cards that share weights, gradients and optimizer state
  std::int64_t adapter_rank = 0;     ///< low-rank adapters are trained, and nothing else; 0 = no adapters

  friend bool operator==(const RunSpec&, const RunSpec&) = default;
};

struct LayersSpec {
  std::string name;
  NetworkSpec network;
  RunSpec run;
  std::vector<Parameter> parameters;  ///< in the order of `parameter_names`
  Point usual;                        ///< what is asked where nothing else is said, in that order
  CardLaws card;
};

/// What a step of such a workload depends on: "batch" and, by family and task, "seq", "px", "target",
/// "prompt" and "new".
std::vector<std::string> parameter_names(const NetworkSpec& network, Task task);

/// How often a step may go through a layer, by parts of a batch and by tokens: longer programs would fill the
/// memory of the machine that simulates them.
inline constexpr std::int64_t kMostLayersTrained = 20'000;
inline constexpr std::int64_t kMostLayersGenerated = 500'000;

/// The largest batch, or number of new tokens, whose step stays within that.
std::int64_t largest_simulated(const NetworkSpec& network, const RunSpec& run);

/// Throws InputError with everything that the figures contradict: heads that do not divide, a decoder without
/// layers, options that do not go together.
void check(const LayersSpec& spec);

}  // namespace vramlab::layers
