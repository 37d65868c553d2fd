// What all passes share, and decoders.
#include "models/layers/pass.hpp"

#include <utility>

namespace vramlab::layers {

Value Pass::loss(const Memory& inputs, const Memory& targets) {
  if (k_.shards != nullptr) k_.shards->gather(k_.shards->groups() - 1);
  switch (family_of(n_.architecture)) {
    case Family::encoder:
      return encoder(inputs, targets);
    case Family::vision:
      return class_loss(vision(inputs), targets);
    case Family::encoder_decoder:
      return language_loss(encoder_and_decoder(inputs), targets, size_.target);
    case Family::decoder:
      break;
  }
  return language_loss(decoder(inputs), inputs, size_.length);
}

Value Pass::run_layer(std::size_t number, const Inputs& inputs, const Layer& layer) {
  const std::int64_t every = run_.recompute_every;
  const bool again = every > 0 && static_cast<std::int64_t>(number) % every == 0 && tape_.recording;
  const Layer wrapped = [this, layer](const Inputs& in) { return recomputed(in, layer); };
  const Layer& chosen = again ? wrapped : layer;
  return k_.shards != nullptr ? gathered(group_++, inputs, chosen) : chosen(inputs);
}

// Operations that compute nothing mark where the backward pass enters the layer and leaves it.
Value Pass::gathered(std::size_t group, Inputs inputs, const Layer& layer) {
  Shards& shards = *k_.shards;
  inputs[0].from = tape_.record({inputs[0].from}, [&shards, group](Gradients given) {
    shards.reduce(group);
    return given;
  });
  shards.gather(group);
  Value output = layer(inputs);
  shards.release(group);
  output.from = tape_.record({output.from}, [&shards, group](Gradients given) {
    shards.gather_again(group);
    return given;
  });
  return output;
}

// The layer runs without a record, and once more when its gradient is known (torch.utils.checkpoint).
Value Pass::recomputed(const Inputs& inputs, const Layer& layer) {
  Inputs detached = inputs;
  std::vector<Edge> edges;
  for (Value& input : detached) edges.push_back(std::exchange(input.from, {}));
  tape_.recording = false;
  Value output = layer(detached);
  tape_.recording = true;
  std::vector<Edge> wanted = edges;
  wanted.push_back(tape_.record_leaf([](const Gradient&) {}));  // its weights want gradients in any case
  const auto backward = [this, detached, edges, layer, autocast = tape_.autocast](Gradients given) {
    Gradients results(edges.size() + 1);
    const auto outer = std::exchange(tape_.autocast, autocast);
    Inputs inputs_again = detached;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (!edges[i]) continue;
      inputs_again[i].from =
          tape_.record_leaf([&results, i](Gradient gradient) { results[i] = std::move(gradient); });
    }
    const std::size_t place = tape_.place();
    Value again = layer(inputs_again);
    again.memory.reset();
    tape_.stop_early(place);
    inputs_again.clear();
    k_.end_autocast();
    tape_.autocast = outer;
    if (again.from) tape_.backward(again.from, std::move(given[0]));
    return results;
  };
  output.from = tape_.record(wanted, backward);
  return output;
}

Value Pass::decoder(const Memory& ids) {
  const Value embedded = k_.embedding(*net_.tokens, ids, rows(), n_.hidden);
  const Memory places = tape_.tensor(size_.length, Number::int64).memory;
  Value hidden = embedded;
  Value positions;
  Memory cosines;
  Memory sines;
  if (net_.positions) {
    positions = k_.embedding(*net_.positions, places, size_.length, n_.hidden);
    hidden = k_.add(embedded, positions);
    hidden = k_.dropout(hidden, n_.embedding_dropout);
  } else {
    angles(size_.length, cosines, sines);
  }
  for (std::size_t i = 0; i < net_.blocks.size(); ++i) {
    const Block& block = net_.blocks[i];
    hidden = run_layer(i, {hidden}, [this, &block, cosines, sines](const Inputs& in) {
      return block.attention.joint ? gpt2_block(block, in[0]) : llama_block(block, in[0], cosines, sines);
    });
  }
  return k_.norm(*net_.last, hidden);
}

// Angles of all positions in single precision, their cosines and sines in the number of the layers.
void Pass::angles(std::int64_t positions, Memory& cosines, Memory& sines) {
  k_.use_matrix_workspace();
  const std::int64_t all = product({positions, n_.head_size});
  const Memory half = tape_.tensor(all / 2, Number::float32).memory;
  const Memory whole = tape_.tensor(all, Number::float32).memory;
  const auto scaled = [&] {
    const Memory plain = tape_.tensor(all, Number::float32).memory;
    return tape_.tensor(all, Number::float32).memory;
  };
  const Memory wide_cosines = scaled();
  const Memory wide_sines = scaled();
  const Number number = tape_.autocast ? Number::float32 : k_.shards ? k_.shards->number() : run_.weights;
  cosines = tape_.tensor(all, number).memory;
  sines = tape_.tensor(all, number).memory;
}

Value Pass::gated(const FeedForward& layer, const Value& input) {
  Value inner;
  {
    Value open = k_.linear(*layer.gate, input);
    open = k_.activate(n_.activation, open);
    const Value up = k_.linear(layer.up, input);
    inner = k_.multiply(open, up);
  }
  return k_.linear(layer.down, inner);
}

Value Pass::plain(const FeedForward& layer, const Value& input, bool drops) {
  Value inner;
  {
    const Value up = k_.linear(layer.up, input);
    inner = k_.dropout(k_.activate(n_.activation, up), drops);
  }
  return k_.linear(layer.down, inner);
}

// The kernels of single precision know no groups of queries: keys and values are repeated for every head, and
// attention is written out.
Value Pass::grouped_attention(const Value& queries, const Value& keys, const Value& values,
                              std::int64_t length) {
  const AttentionShape asked = shape(size_.length, length);
  const bool single = queries.number == Number::float32 && !tape_.autocast;
  if (!single || n_.kv_heads == n_.heads) return k_.attention(queries, keys, values, asked);
  AttentionShape whole = asked;
  whole.kv_heads = whole.heads;
  const Value scaled_queries = k_.scaled(queries);
  const Value all_keys = k_.scaled(k_.repeat(keys, whole.key_elements()));
  const Value all_values = k_.repeat(values, whole.key_elements());
  return k_.written_attention(scaled_queries, all_keys, all_values, whole, nullptr, n_.attention_dropout);
}

Value Pass::llama_block(const Block& block, const Value& hidden, const Memory& cosines, const Memory& sines) {
  Value middle;
  {
    const Value input = k_.norm(block.first, hidden);
    Value queries = k_.turned(k_.linear(block.attention.query, input));
    Value keys = k_.turned(k_.linear(block.attention.key, input));
    Value values = k_.linear(block.attention.value, input);
    const Value turned = k_.rotate(queries, cosines, sines);
    Value turned_keys = k_.rotate(keys, cosines, sines);
    queries = {};
    keys = {};
    if (n_.cache) turned_keys = k_.copy(turned_keys);
    if (n_.cache) values = k_.copy(values);
    const Value attended = grouped_attention(turned, turned_keys, values, size_.length);
    const Value output = k_.linear(block.attention.output, attended);
    middle = k_.add(hidden, output);
  }
  const Value input = k_.norm(block.second, middle);
  const Value output = gated(block.feed_forward, input);
  return k_.add(middle, output);
}

Value Pass::joint_attention(const Attention& attention, const Value& input) {
  Value attended;
  {
    const Value joint = k_.linear(*attention.joint, input);
    auto [queries, keys, values] = k_.split(joint);
    if (n_.cache) keys = k_.copy(keys);
    if (n_.cache) values = k_.copy(values);
    attended = k_.attention(queries, keys, values, shape(size_.length, size_.length));
  }
  const Value output = k_.linear(attention.output, attended);
  return k_.dropout(output, n_.hidden_dropout);
}

Value Pass::gpt2_block(const Block& block, const Value& hidden) {
  Value middle;
  {
    const Value attended = joint_attention(block.attention, k_.norm(block.first, hidden));
    middle = k_.add(attended, hidden);
  }
  const Value input = k_.norm(block.second, middle);
  Value output = plain(block.feed_forward, input);
  output = k_.dropout(output, n_.hidden_dropout);
  return k_.add(middle, output);
}

// Decoders turn their logits into single precision and move the labels by one place.
Value Pass::language_loss(const Value& hidden, const Memory& targets, std::int64_t length) {
  if (!net_.head) return class_loss(hidden, targets);
  tape_.purpose = Purpose::logits;
  Value loss = k_.linear(*net_.head, hidden);
  if (run_.task == Task::training) {
    const bool decodes = family_of(n_.architecture) == Family::decoder;
    const std::int64_t count = product({size_.batch, length});
    const Value wide = decodes ? k_.cast(loss, Number::float32) : loss;
    const Memory padded = decodes ? tape_.tensor(count + size_.batch, Number::int64).memory : nullptr;
    const Memory labels = decodes ? tape_.tensor(count, Number::int64).memory : targets;
    loss = k_.cross_entropy(wide, labels);
  }
  tape_.purpose = Purpose::activations;
  return loss;
}

}  // namespace vramlab::layers
