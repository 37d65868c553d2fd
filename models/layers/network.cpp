#include "models/layers/network.hpp"

#include <utility>

namespace vramlab::layers {

std::int64_t Weights::parameters() const {
  std::int64_t sum = 0;
  for (const Weight& weight : all_) sum += weight.is_buffer ? 0 : weight.elements;
  return sum;
}

std::int64_t Weights::trained() const {
  std::int64_t sum = 0;
  for (const Weight& weight : all_) sum += weight.trained ? weight.elements : 0;
  return sum;
}

/// Registers tensors in the order in which transformers' modules do.
class Network::Builder {
 public:
  Builder(const LayersSpec& spec, Network& network)
      : n_(spec.network), run_(spec.run), trains_(spec.run.adapter_rank == 0), to_(network) {}

  void decoder_only() {
    const bool gpt2 = n_.architecture == Architecture::gpt2;
    to_.tokens = weight(product({n_.vocabulary, n_.hidden}));
    if (gpt2) to_.positions = weight(product({n_.positions, n_.hidden}));
    for (std::int64_t i = 0; i < n_.layers; ++i)
      add_to(to_.blocks, [&] { return gpt2 ? gpt2_block() : llama_block(); });
    to_.last = norm(gpt2);
    language_head({});
    if (gpt2) return;
    for (int i = 0; i < 2; ++i) to_.weights.add_buffer(n_.head_size / 2, Number::float32);  // angles
  }

  void encoder_only() {
    to_.tokens = weight(product({n_.vocabulary, n_.hidden}));
    to_.positions = weight(product({n_.positions, n_.hidden}));
    to_.types = weight(product({n_.token_types, n_.hidden}));
    to_.embedding_norm = norm(true);
    for (std::int64_t i = 0; i < n_.layers; ++i) add_to(to_.blocks, [&] { return encoder_block(); });
    if (n_.head == Head::classes || n_.head == Head::none) to_.pooler = linear(n_.hidden, n_.hidden, true);
    if (n_.head == Head::masked_language_model) {
      const Weight bias = weight(n_.vocabulary);
      to_.transform = linear(n_.hidden, n_.hidden, true);
      to_.transform_norm = norm(true);
      language_head(bias);
    }
    if (n_.head == Head::classes) to_.head = linear(n_.hidden, n_.labels, true);
    for (int i = 0; i < 2; ++i) to_.weights.add_buffer(n_.positions, Number::int64);  // positions and types
  }

  void vision() {
    const std::int64_t side = n_.image_size / n_.patch_size;
    to_.first_token = weight(n_.hidden);
    to_.positions = weight(product({product({side, side}) + 1, n_.hidden}));
    to_.patches = linear(product({n_.image_channels, n_.patch_size, n_.patch_size}), n_.hidden, true);
    for (std::int64_t i = 0; i < n_.layers; ++i) add_to(to_.blocks, [&] { return encoder_block(); });
    to_.last = norm(true);
    if (n_.head == Head::none) to_.pooler = linear(n_.hidden, n_.hidden, true);
    if (n_.head == Head::classes) to_.head = linear(n_.hidden, n_.labels, true);
  }

  void encoder_and_decoder() {
    to_.tokens = weight(product({n_.vocabulary, n_.hidden}));
    for (std::int64_t i = 0; i < n_.layers; ++i) {
      add_to(to_.blocks, [&] { return t5_block(false, i == 0 ? &to_.relative : nullptr); });
    }
    to_.last = norm(false);
    for (std::int64_t i = 0; i < n_.decoder_layers; ++i) {
      add_to(to_.decoder, [&] { return t5_block(true, i == 0 ? &to_.decoder_relative : nullptr); });
    }
    to_.decoder_last = norm(false);
    language_head({});
  }

 private:
  template <class Make>
  void add_to(std::vector<Block>& stack, const Make& make) {
    const std::size_t first = to_.weights.all().size();
    Block block = make();
    block.first_weight = first;
    block.end_weight = to_.weights.all().size();
    stack.push_back(std::move(block));
  }

  Weight weight(std::int64_t elements) { return to_.weights.add(elements, run_.weights, trains_); }

  Norm norm(bool bias) {
    Norm norm{weight(n_.hidden), {}, n_.hidden};
    if (bias) norm.bias = weight(n_.hidden);
    return norm;
  }

  Linear linear(std::int64_t inputs, std::int64_t outputs, bool bias) {
    Linear layer{weight(product({inputs, outputs})), {}, inputs, outputs, false, {}};
    if (bias) layer.bias = weight(outputs);
    return layer;
  }

  /// Adapters are kept in single precision, as PEFT does, so that small changes are not lost.
  Linear adapted(Linear layer) {
    if (run_.adapter_rank == 0) return layer;
    const Weight down = to_.weights.add(product({layer.inputs, run_.adapter_rank}), Number::float32, true);
    const Weight up = to_.weights.add(product({run_.adapter_rank, layer.outputs}), Number::float32, true);
    layer.adapter = Adapter{down, up, run_.adapter_rank};
    return layer;
  }

  Attention attention(bool bias, bool output_bias) {
    const std::int64_t inner = n_.heads * n_.head_size;
    const std::int64_t narrow = n_.kv_heads * n_.head_size;
    Attention made;
    made.query = adapted(linear(n_.hidden, inner, bias));
    made.key = linear(n_.hidden, narrow, bias);
    made.value = adapted(linear(n_.hidden, narrow, bias));
    made.output = linear(inner, n_.hidden, output_bias);
    return made;
  }

  FeedForward feed_forward(bool bias) {
    FeedForward made;
    if (n_.gated) made.gate = linear(n_.hidden, n_.intermediate, bias);
    made.up = linear(n_.hidden, n_.intermediate, bias);
    made.down = linear(n_.intermediate, n_.hidden, bias);
    return made;
  }

  Block llama_block() {
    Block block;
    block.attention = attention(n_.attention_bias, n_.output_bias);
    block.feed_forward = feed_forward(n_.feed_forward_bias);
    block.first = norm(false);
    block.second = norm(false);
    return block;
  }

  Linear turned(std::int64_t inputs, std::int64_t outputs) {
    Linear layer = linear(inputs, outputs, true);
    layer.transposed = true;
    return layer;
  }

  Block gpt2_block() {
    Block block;
    block.first = norm(true);
    block.attention.joint = adapted(turned(n_.hidden, 3 * n_.hidden));
    block.attention.output = turned(n_.hidden, n_.hidden);
    block.second = norm(true);
    block.feed_forward.up = turned(n_.hidden, n_.intermediate);
    block.feed_forward.down = turned(n_.intermediate, n_.hidden);
    return block;
  }

  Block encoder_block() {
    Block block;
    block.attention = attention(n_.attention_bias, n_.output_bias);
    block.first = norm(true);
    block.feed_forward = feed_forward(n_.feed_forward_bias);
    block.second = norm(true);
    return block;
  }

  Block t5_block(bool decodes, std::optional<Weight>* distances) {
    Block block;
    block.attention = attention(false, false);
    if (distances != nullptr) *distances = weight(product({n_.buckets, n_.heads}));
    block.first = norm(false);
    if (decodes) {
      block.cross = attention(false, false);
      block.cross_norm = norm(false);
    }
    block.feed_forward = feed_forward(false);
    block.second = norm(false);
    return block;
  }

  void language_head(const std::optional<Weight>& bias) {
    if (n_.head == Head::none || n_.head == Head::classes) return;
    Linear made{*to_.tokens, {}, n_.hidden, n_.vocabulary, false, {}};
    if (!n_.tied) made.weight = weight(product({n_.hidden, n_.vocabulary}));
    made.bias = bias;
    to_.head = made;
  }

  const NetworkSpec& n_;
  const RunSpec& run_;
  bool trains_;
  Network& to_;
};

Network::Network(const LayersSpec& spec) {
  Builder builder(spec, *this);
  switch (family_of(spec.network.architecture)) {
    case Family::decoder:
      builder.decoder_only();
      break;
    case Family::encoder:
      builder.encoder_only();
      break;
    case Family::vision:
      builder.vision();
      break;
    case Family::encoder_decoder:
      builder.encoder_and_decoder();
      break;
  }
}

}  // namespace vramlab::layers
