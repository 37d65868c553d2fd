// The operations that networks are made of, each with the memory that PyTorch's takes: its result, what it
// saves for the backward pass, its buffers, and the gradients that it computes then.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "models/layers/laws.hpp"
#include "models/layers/shards.hpp"
#include "models/layers/tape.hpp"
#include "models/layers/weights.hpp"

namespace vramlab::layers {

enum class Activation : std::uint8_t { silu, relu, gelu, gelu_new, tanh, quick_gelu };

/// Writes operations on a tape. Results are values; what a caller lets go of is freed unless it was saved.
class Kernels {
 public:
  Kernels(Tape& on, const KeptSlots& slots, const CardLaws& card) : tape(on), slots_(slots), card_(card) {}

  Tape& tape;

  // ---- weights and numbers

  /// The weight itself; what it saves costs nothing.
  Value weight(const Weight& weight);
  /// In the number of mixed precision, if that is on: a copy for each weight, kept until `end_autocast`.
  Value cast_weight(const Weight& weight);
  /// `value` in another number; itself if it has that already.
  Value cast(const Value& value, Number number);
  /// As inputs of matrix products, and of what is computed in single precision, are taken.
  Value half_of(const Value& value) { return tape.autocast ? cast(value, *tape.autocast) : value; }
  Value single_of(const Value& value) { return tape.autocast ? cast(value, Number::float32) : value; }
  void end_autocast() { tape.casts.clear(); }

  // ---- matrix products

  /// `inputs` numbers in each row become `outputs` numbers.
  Value linear(const Linear& layer, const Value& input);
  /// Rows of `table` for `rows` numbers that `ids` holds.
  Value embedding(const Weight& table, const Memory& ids, std::int64_t rows, std::int64_t width);
  /// Scaled dot product attention by a fused kernel: with causal or no mask, or one that it does not keep.
  Value attention(const Value& queries, const Value& keys, const Value& values, const AttentionShape& shape);
  /// The same written out: scores, their softmax and its product with the values; `bias` is added to the
  /// scores, `drops`: with dropout.
  Value written_attention(const Value& queries, const Value& keys, const Value& values,
                          const AttentionShape& shape, const Value* bias, bool drops);

  // ---- element by element

  Value add(const Value& left, const Value& right);
  Value multiply(const Value& left, const Value& right);
  /// `value` times, or plus, a number or a tensor without gradient that is held elsewhere.
  Value scaled(const Value& value, const Memory& by = nullptr);
  /// The same elements seen in another order: no memory, but a gradient in the old order.
  Value turned(const Value& value);
  /// The same elements in another order, in memory of their own.
  Value copy(const Value& value);
  /// Three equal parts of a tensor, without memory of their own.
  std::array<Value, 3> split(const Value& value);
  /// The first `elements` of a tensor; its gradient is as large as the tensor.
  Value slice(const Value& value, std::int64_t elements);
  /// Two tensors, the first repeated, in one of `elements`.
  Value join(const Value& first, const Value& second, std::int64_t elements);
  /// A tensor several times over, `elements` in all.
  Value repeat(const Value& value, std::int64_t elements);
  Value activate(Activation kind, const Value& value);
  /// In training, with a mask of a byte each; `drops` false = nothing happens.
  Value dropout(const Value& value, bool drops);
  Value norm(const Norm& norm, const Value& value);
  /// Rotary position embedding of queries or keys; `cosines` and `sines` hold the angles.
  Value rotate(const Value& value, const Memory& cosines, const Memory& sines);
  /// Mean of the cross entropy of logits; `labels` are held until the gradient is known.
  Value cross_entropy(const Value& logits, Memory labels);

  /// The first matrix product of a thread makes its workspace.
  void use_matrix_workspace();
  bool in_backward = false;
  Shards* shards = nullptr;  ///< where weights are shared by several cards
  bool training = true;      ///< whether anything is saved, and dropout drops

 private:
  Value root_mean_square(const Norm& norm, const Value& value);
  Value layer_norm(const Norm& norm, const Value& value);
  Value gelu_new(const Value& value);
  Value product_of(const Linear& layer, const Value& input);
  Gradient new_gradient(std::int64_t elements, Number number, bool is_view = false) {
    return {tape.tensor(elements, number).memory, elements, number, is_view};
  }
  Gradient column_sum_of(const Gradient& gradient, std::int64_t columns, Number number);
  Gradient embedding_gradient(std::int64_t elements, Number number, std::int64_t rows);
  void take_gradient(const Weight& weight, Gradient gradient);
  Value unary(const Value& value, Memory saved, Memory result);

  const KeptSlots& slots_;
  const CardLaws& card_;
  std::map<std::uint32_t, Edge> leaves_;
};

}  // namespace vramlab::layers
