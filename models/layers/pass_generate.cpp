// Decoding with a cache of keys and values: the prompt at once, then token after token.
#include <utility>

#include "models/layers/pass.hpp"

namespace vramlab::layers {

/// What a layer keeps of all positions so far.
struct Pass::Cache {
  Value keys;
  Value values;
};

// The cache grows by a new tensor that takes the old one's place, a copy of everything (DynamicCache of
// transformers).
Value Pass::cached_block(const Block& block, const Value& hidden, Cache& cache, const Memory& cosines,
                         const Memory& sines) {
  const auto grow = [this](Value& kept, const Value& added) {
    const Purpose before = std::exchange(tape_.purpose, Purpose::cache);
    kept = tape_.tensor(kept.elements + added.elements, added.number);
    tape_.purpose = before;
  };
  Value middle;
  {
    Value attended;
    {
      const Value input = k_.norm(block.first, hidden);
      Value queries;
      {
        Value keys;
        Value values;
        if (block.attention.joint) {
          const auto parts = k_.split(k_.linear(*block.attention.joint, input));
          queries = parts[0];
          keys = parts[1];
          values = parts[2];
        } else {
          queries = k_.linear(block.attention.query, input);
          keys = k_.linear(block.attention.key, input);
          values = k_.linear(block.attention.value, input);
          queries = k_.rotate(queries, cosines, sines);
          keys = k_.rotate(keys, cosines, sines);
        }
        grow(cache.keys, keys);
        grow(cache.values, values);
      }
      const std::int64_t keys = cache.keys.elements / product({size_.batch, n_.kv_heads, n_.head_size});
      attended = grouped_attention(queries, cache.keys, cache.values, keys);
    }
    middle = k_.add(hidden, k_.linear(block.attention.output, attended));
  }
  const Value input = k_.norm(block.second, middle);
  const FeedForward& layer = block.feed_forward;
  return k_.add(middle, layer.gate ? gated(layer, input) : plain(layer, input));
}

// One pass over `size_.length` new positions, the logits of the last one, and the choice by them.
void Pass::token(std::vector<Cache>& caches, const Memory& ids) {
  const Value embedded = k_.embedding(*net_.tokens, ids, rows(), n_.hidden);
  Value hidden = embedded;
  const Memory places = tape_.tensor(rows(), Number::int64).memory;
  Memory cosines;
  Memory sines;
  if (net_.positions) {
    hidden = k_.add(hidden, k_.embedding(*net_.positions, places, rows(), n_.hidden));
  } else {
    angles(rows(), cosines, sines);
  }
  for (std::size_t i = 0; i < net_.blocks.size(); ++i) {
    hidden = cached_block(net_.blocks[i], hidden, caches[i], cosines, sines);
  }
  hidden = k_.norm(*net_.last, hidden);
  tape_.purpose = Purpose::logits;
  Value last = hidden;
  last.elements = product({size_.batch, n_.hidden});
  const Value logits = k_.linear(*net_.head, last);
  const Value wide = k_.cast(logits, Number::float32);
  const Memory processed = tape_.tensor(wide.elements, Number::float32).memory;
  const Memory chosen = tape_.tensor(size_.batch, Number::int64).memory;
  tape_.purpose = Purpose::activations;
}

void Pass::generate(std::int64_t tokens, const Memory& prompt) {
  std::vector<Cache> caches(net_.blocks.size());
  const std::int64_t length = size_.length;
  Memory ids = prompt;
  for (std::int64_t i = 0; i < tokens; ++i) {
    size_.length = i == 0 ? length : 1;
    token(caches, ids);
    ids = tape_.tensor(product({size_.batch, length + i + 1}), Number::int64).memory;
  }
}

}  // namespace vramlab::layers
