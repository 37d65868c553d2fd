// A network as its layers: which tensors it has, and what they belong to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/layers/spec.hpp"
#include "models/layers/weights.hpp"

namespace vramlab::layers {

/// Projections around attention.
struct Attention {
  std::optional<Linear> joint;  ///< queries, keys and values in one product; the next three are empty then
  Linear query;
  Linear key;
  Linear value;
  Linear output;
};

struct FeedForward {
  std::optional<Linear> gate;
  Linear up;
  Linear down;
};

/// One layer.
struct Block {
  Attention attention;
  std::optional<Attention> cross;  ///< over what the encoder gave
  FeedForward feed_forward;
  Norm first;
  Norm cross_norm;  ///< only with `cross`
  Norm second;
  std::size_t first_weight = 0;  ///< its weights are those from here …
  std::size_t end_weight = 0;    ///< … to here
};

/// All layers. What an architecture does not have is empty.
struct Network {
  explicit Network(const LayersSpec& spec);

  Weights weights;
  std::optional<Weight> tokens;  ///< embedding of the vocabulary
  std::optional<Weight> positions;
  std::optional<Weight> types;
  std::optional<Weight> first_token;  ///< of a vision network
  std::optional<Linear> patches;
  std::optional<Norm> embedding_norm;
  std::vector<Block> blocks;
  std::optional<Weight> relative;  ///< relative positions, of the encoder …
  std::optional<Norm> last;
  std::vector<Block> decoder;
  std::optional<Weight> decoder_relative;  ///< … and of the decoder
  std::optional<Norm> decoder_last;
  std::optional<Linear> pooler;
  std::optional<Linear> transform;  ///< of the masked language model
  std::optional<Norm> transform_norm;
  std::optional<Linear> head;

 private:
  class Builder;
};

}  // namespace vramlab::layers
