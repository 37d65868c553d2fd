// The forward pass of a network, from inputs to the loss; the operations that it records make the backward
// pass.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/layers/kernels.hpp"
#include "models/layers/network.hpp"
#include "models/layers/spec.hpp"

namespace vramlab::layers {

/// How much a pass works on.
struct PassSizes {
  std::int64_t batch = 1;
  std::int64_t length = 1;  ///< positions of a row; of a vision network its patches and the first token
  std::int64_t target = 0;  ///< positions of a row of a decoder beside an encoder
  std::int64_t pixels = 0;  ///< side of an image
};

class Pass {
 public:
  Pass(Kernels& kernels, const Network& network, const LayersSpec& spec, const PassSizes& sizes)
      : k_(kernels), tape_(kernels.tape), net_(network), n_(spec.network), run_(spec.run), size_(sizes) {}

  /// The loss of one batch, whose inputs (numbers of words, or images) the caller holds; without a backward
  /// pass what the network gives.
  Value loss(const Memory& inputs, const Memory& targets);

  /// Tokens, one after the other, with a cache of keys and values; `size_.length` of them are the prompt.
  void generate(std::int64_t tokens, const Memory& prompt);

 private:
  using Inputs = std::vector<Value>;
  using Layer = std::function<Value(const Inputs&)>;

  // What wraps a layer: recomputation, and shards that are gathered. `number` counts the layers of a stack.
  Value run_layer(std::size_t number, const Inputs& inputs, const Layer& layer);
  Value gathered(std::size_t group, Inputs inputs, const Layer& layer);
  Value recomputed(const Inputs& inputs, const Layer& layer);

  // Decoders.
  Value decoder(const Memory& ids);
  Value llama_block(const Block& block, const Value& hidden, const Memory& cosines, const Memory& sines);
  Value gpt2_block(const Block& block, const Value& hidden);
  Value joint_attention(const Attention& attention, const Value& input);
  Value gated(const FeedForward& layer, const Value& input);
  Value plain(const FeedForward& layer, const Value& input, bool drops = false);
  Value grouped_attention(const Value& queries, const Value& keys, const Value& values, std::int64_t length);
  void angles(std::int64_t positions, Memory& cosines, Memory& sines);

  // Encoders and vision networks.
  Value encoder(const Memory& ids, const Memory& targets);
  Value vision(const Memory& images);
  Value patch_embedding(const Memory& images);
  Value plain_attention(const Attention& attention, const Value& input);
  Value bert_block(const Block& block, const Value& hidden);
  Value vision_block(const Block& block, const Value& hidden);

  // An encoder and a decoder.
  Value encoder_and_decoder(const Memory& ids);
  Value position_bias(const std::optional<Weight>& relative, std::int64_t length);
  Value written(const Attention& attention, const Value& input, const Value& over,
                const AttentionShape& shape, const Value* bias);
  Value t5_block(const Block& block, const Value& hidden, const Value* encoded, const Value* bias);

  // Heads.
  Value language_loss(const Value& hidden, const Memory& targets, std::int64_t length);
  Value class_loss(const Value& hidden, const Memory& targets);

  // A token.
  struct Cache;
  Value cached_block(const Block& block, const Value& hidden, Cache& cache, const Memory& cosines,
                     const Memory& sines);
  void token(std::vector<Cache>& caches, const Memory& ids);

  [[nodiscard]] std::int64_t rows() const { return product({size_.batch, size_.length}); }
  [[nodiscard]] AttentionShape shape(std::int64_t queries, std::int64_t keys) const {
    return {size_.batch, queries, keys, n_.heads, n_.kv_heads, n_.head_size};
  }

  Kernels& k_;
  Tape& tape_;
  const Network& net_;
  const NetworkSpec& n_;
  const RunSpec& run_;
  PassSizes size_;
  std::size_t group_ = 0;  // layers that were begun
};

}  // namespace vramlab::layers
