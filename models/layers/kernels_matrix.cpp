// Weights, matrix products and attention.
#include <algorithm>
#include <utility>

#include "models/layers/kernels.hpp"

namespace vramlab::layers {

void Kernels::take_gradient(const Weight& weight, Gradient gradient) {
  if (shards != nullptr) return shards->take(weight, std::move(gradient));
  const Kept kept{slots_.gradient(weight), static_cast<Bytes>(weight.elements) * bytes_of(weight.number)};
  if (tape.has(kept)) return;  // added to what is there
  if (gradient.memory.use_count() > 1) {
    tape.allocate_kept(kept);
  } else {
    tape.keep(gradient, kept);
  }
}

Value Kernels::weight(const Weight& weight) {
  Value value{nullptr, weight.elements, shards != nullptr ? shards->number() : weight.number, {}};
  if (!weight.trained || !tape.recording) return value;
  auto [leaf, is_new] = leaves_.try_emplace(weight.index);
  if (is_new) {
    leaf->second =
        tape.record_leaf([this, weight](Gradient gradient) { take_gradient(weight, std::move(gradient)); });
  }
  value.from = leaf->second;
  return value;
}

Value Kernels::cast_weight(const Weight& weight) {
  const Value value = this->weight(weight);
  if (!tape.autocast || value.number == *tape.autocast) return value;
  const auto found = tape.casts.find(weight.index);
  if (found != tape.casts.end()) return found->second;
  return tape.casts.emplace(weight.index, cast(value, *tape.autocast)).first->second;
}

Value Kernels::cast(const Value& value, Number number) {
  if (value.number == number) return value;
  Value result = tape.tensor(value.elements, number);
  result.from =
      tape.record({value.from}, [this, elements = value.elements, number = value.number](Gradients) {
        return Gradients{new_gradient(elements, number)};
      });
  return result;
}

void Kernels::use_matrix_workspace() {
  const Purpose before = std::exchange(tape.purpose, Purpose::workspaces);
  tape.ensure_kept({slots_.workspace(in_backward ? 1 : 0), card_.matrix_workspace});
  tape.purpose = before;
}

Gradient Kernels::column_sum_of(const Gradient& gradient, std::int64_t columns, Number number) {
  Gradient sum = new_gradient(columns, number);
  const ReductionBuffers buffers = column_sum(gradient.elements / columns, columns, card_);
  if (buffers.partial_sums == 0) return sum;
  const Memory partial_sums = tape.allocate(buffers.partial_sums);
  tape.scratch(buffers.counters);
  return sum;
}

Value Kernels::product_of(const Linear& layer, const Value& input) {
  use_matrix_workspace();
  Value bias;
  Value weight;
  Value in;
  // g++ evaluates arguments from the last to the first; so do the casts that they need.
  if (layer.transposed) {
    weight = cast_weight(layer.weight);
    in = half_of(input);
    if (layer.bias) bias = cast_weight(*layer.bias);
  } else {
    if (layer.bias) bias = cast_weight(*layer.bias);
    weight = cast_weight(layer.weight);
    in = half_of(input);
  }
  const std::int64_t rows = in.elements / layer.inputs;
  Value result = tape.tensor(product({rows, layer.outputs}), in.number);
  const auto backward = [this, in_wanted = in.wants_gradient(), weight_wanted = weight.wants_gradient(),
                         bias_wanted = bias.wants_gradient(), has_bias = layer.bias.has_value(),
                         input_elements = in.elements, weight_elements = weight.elements,
                         outputs = layer.outputs, transposed = layer.transposed, number = in.number,
                         saved_input = weight.wants_gradient() ? in.memory : nullptr,
                         saved_weight = in.wants_gradient() ? weight.memory : nullptr](Gradients given) {
    use_matrix_workspace();
    Gradients gradients(3);
    const auto of_weight = [&] {
      if (weight_wanted) gradients[1] = new_gradient(weight_elements, number, !transposed);
    };
    // Gradients are computed in the order of the names of an operation's arguments.
    if (!has_bias) of_weight();
    if (in_wanted) gradients[0] = new_gradient(input_elements, number, true);
    if (has_bias) of_weight();
    if (bias_wanted) gradients[2] = column_sum_of(given[0], outputs, number);
    return gradients;
  };
  result.from = tape.record({in.from, weight.from, bias.from}, backward);
  return result;
}

Value Kernels::linear(const Linear& layer, const Value& input) {
  Value result = product_of(layer, input);
  if (!layer.adapter) return result;
  const Adapter& adapter = *layer.adapter;
  const Linear down{adapter.down, {}, layer.inputs, adapter.rank, false, {}};
  const Linear up{adapter.up, {}, adapter.rank, layer.outputs, false, {}};
  const Value in = tape.autocast ? input : cast(input, adapter.down.number);
  const Value wide = product_of(up, product_of(down, in));
  const Value scaled_wide = scaled(wide);
  const Value sum = add(result, scaled_wide);
  return cast(sum, result.number);
}

// More than 3,072 rows are sorted by the number that they have (aten/src/ATen/native/cuda/Embedding.cu).
Gradient Kernels::embedding_gradient(std::int64_t elements, Number number, std::int64_t rows) {
  constexpr std::int64_t kUnsorted = 3072;
  Gradient gradient = new_gradient(elements, number);
  if (rows <= kUnsorted) return gradient;
  const Memory sorted = tape.tensor(rows, Number::int64).memory;
  const Memory places = tape.tensor(rows, Number::int64).memory;
  tape.scratch(static_cast<Bytes>(product({rows, 16})));
  return gradient;
}

Value Kernels::embedding(const Weight& table, const Memory& ids, std::int64_t rows, std::int64_t width) {
  const Value weight = this->weight(table);
  Value result = tape.tensor(product({rows, width}), weight.number);
  result.from = tape.record({weight.from},
                            [this, elements = weight.elements, number = weight.number, rows, ids](Gradients) {
                              return Gradients{embedding_gradient(elements, number, rows)};
                            });
  return result;
}

Value Kernels::attention(const Value& queries, const Value& keys, const Value& values,
                         const AttentionShape& shape) {
  const Value q = half_of(queries);
  const Value k = half_of(keys);
  const Value v = half_of(values);
  const bool half = q.number != Number::float32;
  const Memory seed = half ? tape.allocate(8) : nullptr;
  const Memory offset = half ? tape.allocate(8) : nullptr;
  Value result = tape.tensor(q.elements, q.number);
  constexpr std::int64_t kRows = 32;  // the memory-efficient kernel fills up to this many
  const std::int64_t rows = half ? shape.queries : (shape.queries + kRows - 1) / kRows * kRows;
  const Memory statistics =
      training ? tape.tensor(product({shape.batch, shape.heads, rows}), Number::float32).memory : nullptr;
  constexpr Bytes kScratch = 256;
  if (half && shape.queries > 1) tape.scratch(kScratch);
  result.from = tape.record({q.from, k.from, v.from},
                            [this, q = q.memory, k = k.memory, v = v.memory, number = q.number, half, shape,
                             output = result.memory, statistics, seed, offset](Gradients) {
                              Gradients gradients{new_gradient(shape.query_elements(), number),
                                                  new_gradient(shape.key_elements(), number),
                                                  new_gradient(shape.key_elements(), number)};
                              if (half) {
                                tape.scratch(half_attention_workspace(shape));
                                return gradients;
                              }
                              const std::int64_t scores = product({shape.batch, shape.heads, shape.queries});
                              Memory weighted = tape.tensor(shape.query_elements(), number).memory;
                              Memory sums = tape.tensor(scores, Number::float32).memory;
                              const Memory ordered = tape.tensor(scores, Number::float32).memory;
                              sums.reset();
                              weighted.reset();
                              tape.scratch(single_attention_workspace(shape));
                              return gradients;
                            });
  return result;
}

Value Kernels::turned(const Value& value) { return unary(value, nullptr, value.memory); }

Value Kernels::written_attention(const Value& queries, const Value& keys, const Value& values,
                                 const AttentionShape& shape, const Value* bias, bool drops) {
  const Value q = half_of(queries);
  const Value k = half_of(keys);
  const Value v = half_of(values);
  const std::int64_t cells = product({shape.batch, shape.heads, shape.queries, shape.keys});
  use_matrix_workspace();
  Value scores = tape.tensor(cells, q.number);
  scores.from =
      tape.record({q.from, k.from}, [this, q = q.memory, k = k.memory, shape, number = q.number](Gradients) {
        use_matrix_workspace();
        return Gradients{new_gradient(shape.query_elements(), number, true),
                         new_gradient(shape.key_elements(), number, true)};
      });
  if (bias != nullptr) {  // added in place
    scores.from = tape.record({scores.from, bias->from}, [this, cells, number = bias->number,
                                                          wanted = bias->wants_gradient()](Gradients given) {
      Gradients gradients{given[0], {}};
      if (wanted && given[0].number != number) gradients[1] = new_gradient(cells, number);
      if (wanted && given[0].number == number) gradients[1] = given[0];
      return gradients;
    });
  }
  Value wide = cast(scores, Number::float32);
  scores = {};
  Value shares = tape.tensor(cells, Number::float32);
  shares.from = tape.record({wide.from}, [this, cells, result = shares.memory](Gradients) {
    return Gradients{new_gradient(cells, Number::float32)};
  });
  wide = {};
  Value weights = cast(shares, q.number);
  shares = {};
  weights = dropout(weights, drops);
  Value result = tape.tensor(q.elements, q.number);
  result.from = tape.record({weights.from, v.from}, [this, weights = weights.memory, v = v.memory, cells,
                                                     shape, number = q.number](Gradients) {
    use_matrix_workspace();
    return Gradients{new_gradient(cells, number, true), new_gradient(shape.key_elements(), number, true)};
  });
  return result;
}

}  // namespace vramlab::layers
