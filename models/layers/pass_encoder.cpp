// Encoders, vision networks, and networks of an encoder and a decoder.
#include <utility>

#include "models/layers/pass.hpp"

namespace vramlab::layers {

Value Pass::plain_attention(const Attention& attention, const Value& input) {
  Value attended;
  {
    const Value queries = k_.linear(attention.query, input);
    const Value keys = k_.linear(attention.key, input);
    const Value values = k_.linear(attention.value, input);
    attended = k_.attention(queries, keys, values, shape(size_.length, size_.length));
  }
  const Value output = k_.linear(attention.output, attended);
  return k_.dropout(output, n_.hidden_dropout);
}

// ---- BERT: norms behind the sums

Value Pass::bert_block(const Block& block, const Value& hidden) {
  Value middle;
  {
    const Value attended = plain_attention(block.attention, hidden);
    middle = k_.norm(block.first, k_.add(attended, hidden));
  }
  Value output = plain(block.feed_forward, middle);
  output = k_.dropout(output, n_.hidden_dropout);
  return k_.norm(block.second, k_.add(output, middle));
}

Value Pass::encoder(const Memory& ids, const Memory& targets) {
  Value hidden;
  {
    const Memory types = tape_.tensor(size_.length, Number::int64).memory;
    const Value words = k_.embedding(*net_.tokens, ids, rows(), n_.hidden);
    const Value sorts = k_.embedding(*net_.types, types, rows(), n_.hidden);
    Value sum = k_.add(words, sorts);
    const Value places = k_.embedding(*net_.positions, types, size_.length, n_.hidden);
    sum = k_.add(sum, places);
    const Value normal = k_.norm(*net_.embedding_norm, sum);
    hidden = k_.dropout(normal, n_.embedding_dropout);
  }
  for (std::size_t i = 0; i < net_.blocks.size(); ++i) {
    hidden = run_layer(
        i, {hidden}, [this, &block = net_.blocks[i]](const Inputs& in) { return bert_block(block, in[0]); });
  }
  if (n_.head != Head::masked_language_model) return class_loss(hidden, targets);
  const Value turned = k_.linear(*net_.transform, hidden);
  const Value bent = k_.activate(n_.activation, turned);
  return language_loss(k_.norm(*net_.transform_norm, bent), ids, size_.length);
}

// The first position of each row decides on the class; without a head the mean of everything is the loss.
Value Pass::class_loss(const Value& hidden, const Memory& targets) {
  Value first = hidden;
  if (net_.pooler || n_.head == Head::classes) {
    first = k_.slice(hidden, product({size_.batch, n_.hidden}));
    if (net_.pooler) first = k_.activate(Activation::tanh, k_.linear(*net_.pooler, first));
  }
  if (n_.head == Head::classes) {
    const Value logits = k_.linear(*net_.head, first);
    return run_.task == Task::training ? k_.cross_entropy(logits, targets) : logits;
  }
  return run_.task == Task::training ? k_.slice(first, 1) : first;
}

// ---- vision networks: norms in front

// cuDNN wants the channels of a pixel side by side, eight of them in half precision: it copies images,
// weights and what comes out.
Value Pass::patch_embedding(const Memory& images) {
  const Linear& patches = *net_.patches;
  const std::int64_t pixels = product({size_.batch, size_.pixels, size_.pixels});
  const std::int64_t outputs = product({size_.batch, size_.length - 1, n_.hidden});
  const std::int64_t area = product({n_.patch_size, n_.patch_size});
  const Number number_of_images = k_.shards != nullptr ? k_.shards->number() : run_.weights;
  const Value image{images, product({pixels, n_.image_channels}), number_of_images, {}};
  const Value bias = k_.cast_weight(*patches.bias);
  const Value weight = k_.cast_weight(patches.weight);
  const Value in = k_.half_of(image);
  Value result = tape_.tensor(outputs, in.number);
  const bool half = in.number != Number::float32;
  constexpr std::int64_t kTogether = 8;
  const std::int64_t channels = (n_.image_channels + kTogether - 1) / kTogether * kTogether;
  const Bytes workspace =
      half ? bytes_of(in.number) * static_cast<Bytes>(product({pixels, channels}) + outputs +
                                                      product({n_.hidden, channels, area})) +
                 16
           : 0;
  const auto purpose = std::exchange(tape_.purpose, Purpose::workspaces);
  tape_.scratch(workspace);
  tape_.purpose = purpose;
  result.from =
      tape_.record({weight.from, bias.from}, [this, workspace, number = in.number, weights = weight.elements,
                                              biases = bias.elements, saved = in.memory](Gradients) {
        const auto gradient = [&](std::int64_t elements) {
          return Gradient{tape_.tensor(elements, number).memory, elements, number, false};
        };
        Gradients gradients{gradient(weights), {}};
        tape_.scratch(workspace);
        gradients[1] = gradient(biases);
        return gradients;
      });
  return result;
}

Value Pass::vision_block(const Block& block, const Value& hidden) {
  Value middle;
  {
    const Value attended = plain_attention(block.attention, k_.norm(block.first, hidden));
    middle = k_.add(attended, hidden);
  }
  Value output;
  {
    Value inner;
    {
      const Value up = k_.linear(block.feed_forward.up, k_.norm(block.second, middle));
      inner = k_.activate(n_.activation, up);
    }
    output = k_.linear(block.feed_forward.down, inner);
  }
  output = k_.dropout(output, n_.hidden_dropout);
  return k_.add(output, middle);
}

Value Pass::vision(const Memory& images) {
  Value hidden;
  {
    const Value patches = patch_embedding(images);
    const Value first = k_.weight(*net_.first_token);
    const Value joined = k_.join(first, patches, product({rows(), n_.hidden}));
    Value places = k_.weight(*net_.positions);
    places.elements = product({size_.length, n_.hidden});
    hidden = k_.dropout(k_.add(joined, places), n_.hidden_dropout);
  }
  for (std::size_t i = 0; i < net_.blocks.size(); ++i) {
    hidden = run_layer(i, {hidden}, [this, &block = net_.blocks[i]](const Inputs& in) {
      return vision_block(block, in[0]);
    });
  }
  return k_.norm(*net_.last, hidden);
}

// ---- T5: attention written out, with a bias for each distance

// The bias of the first layer serves all others; a mask over the rows of the batch is added to it.
Value Pass::position_bias(const std::optional<Weight>& relative, std::int64_t length) {
  const std::int64_t cells = product({length, length});
  const Memory buckets = tape_.tensor(cells, Number::int64).memory;
  const Value bias = k_.embedding(*relative, buckets, cells, n_.heads);
  Value mask = tape_.tensor(product({size_.batch, n_.heads, length, length}), bias.number);
  mask.from = tape_.record({bias.from}, [this, elements = bias.elements, number = bias.number](Gradients) {
    return Gradients{{tape_.tensor(elements, number).memory, elements, number, false}};
  });
  return mask;
}

Value Pass::written(const Attention& attention, const Value& input, const Value& over,
                    const AttentionShape& shape, const Value* bias) {
  Value attended;
  {
    // Products of batches want the heads apart, in copies.
    const Value queries = k_.copy(k_.linear(attention.query, input));
    const Value keys = k_.copy(k_.linear(attention.key, over));
    const Value values = k_.copy(k_.linear(attention.value, over));
    attended = k_.written_attention(queries, keys, values, shape, bias, n_.attention_dropout);
    attended = k_.copy(attended);
  }
  const Value output = k_.linear(attention.output, attended);
  return k_.dropout(output, n_.hidden_dropout);
}

Value Pass::t5_block(const Block& block, const Value& hidden, const Value* encoded, const Value* bias) {
  const std::int64_t length = encoded != nullptr ? size_.target : size_.length;
  Value middle;
  {
    const Value input = k_.norm(block.first, hidden);
    middle = k_.add(hidden, written(block.attention, input, input, shape(length, length), bias));
  }
  if (encoded != nullptr) {
    const Value input = k_.norm(block.cross_norm, middle);
    middle = k_.add(middle, written(*block.cross, input, *encoded, shape(length, size_.length), nullptr));
  }
  const Value input = k_.norm(block.second, middle);
  Value output =
      n_.gated ? gated(block.feed_forward, input) : plain(block.feed_forward, input, n_.hidden_dropout);
  output = k_.dropout(output, n_.hidden_dropout);
  return k_.add(middle, output);
}

Value Pass::encoder_and_decoder(const Memory& ids) {
  const auto stack = [this](const std::vector<Block>& blocks, Value hidden, const Value* encoded,
                            const Value& bias) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Inputs inputs{hidden, bias};
      if (encoded != nullptr) inputs.push_back(*encoded);
      hidden = run_layer(i, inputs, [this, &block = blocks[i]](const Inputs& in) {
        return t5_block(block, in[0], in.size() > 2 ? &in[2] : nullptr, &in[1]);
      });
    }
    return hidden;
  };
  Value encoded;
  {
    const Value embedded = k_.embedding(*net_.tokens, ids, rows(), n_.hidden);
    const Value bias = position_bias(net_.relative, size_.length);
    const Value hidden = stack(net_.blocks, k_.dropout(embedded, n_.hidden_dropout), nullptr, bias);
    encoded = k_.dropout(k_.norm(*net_.last, hidden), n_.hidden_dropout);
  }
  const std::int64_t count = product({size_.batch, size_.target});
  const Memory shifted = tape_.tensor(count, Number::int64).memory;
  const Value embedded = k_.embedding(*net_.tokens, shifted, count, n_.hidden);
  const Value bias = position_bias(net_.decoder_relative, size_.target);
  const Value hidden = stack(net_.decoder, k_.dropout(embedded, n_.hidden_dropout), &encoded, bias);
  return k_.dropout(k_.norm(*net_.decoder_last, hidden), n_.hidden_dropout);
}

}  // namespace vramlab::layers
