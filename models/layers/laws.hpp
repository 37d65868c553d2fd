// Sizes that kernels of libraries ask for, as functions of shapes and card.
#pragma once

#include <cstdint>

#include "core/units.hpp"
#include "models/layers/tape.hpp"

namespace vramlab::layers {

/// What a card decides about kernels. The defaults are those of an H100 and an H200, where all laws here were
/// compared with recordings; for other cards they stand in.
struct CardLaws {
  std::int64_t multiprocessors = 132;
  std::int64_t threads_each = 2048;  ///< of a multiprocessor, at once
  /// What cuBLAS gets for good from PyTorch, one for each thread that multiplies: 4096 × 8 KiB on Hopper,
  /// 8.1 MiB on other cards (aten/src/ATen/cuda/CublasHandlePool.cpp).
  Bytes matrix_workspace = 4096 * 8_KiB;
  /// A workspace of matrix products with a bias, once, in the backward pass.
  Bytes bias_workspace = 1_MiB;
};

/// What a sum of several blocks of threads needs: their partial sums, and a counter for each output block.
struct ReductionBuffers {
  Bytes partial_sums = 0;  ///< 0 = one block does it all
  Bytes counters = 0;
};

/// A sum over the rows of a matrix into its columns: `rows` numbers into each of `columns` outputs, in
/// single precision. Follows setReduceConfig of aten/src/ATen/native/cuda/Reduce.cuh.
ReductionBuffers column_sum(std::int64_t rows, std::int64_t columns, const CardLaws& card);

/// Shapes of scaled dot product attention.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t queries = 1;  ///< positions that ask
  std::int64_t keys = 1;     ///< positions that answer
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 64;

  [[nodiscard]] std::int64_t query_elements() const { return product({batch, queries, heads, head_size}); }
  [[nodiscard]] std::int64_t key_elements() const { return product({batch, keys, kv_heads, head_size}); }
};

/// Workspace of the backward kernel in half precision (cuDNN; FlashAttention needs as much): the gradient of
/// the queries and a number a row in single precision, and with grouped queries gradients of keys and values
/// for every head.
Bytes half_attention_workspace(const AttentionShape& shape);

/// The same of the memory-efficient kernel in single precision: sums of gradients, and counters.
Bytes single_attention_workspace(const AttentionShape& shape);

}  // namespace vramlab::layers
