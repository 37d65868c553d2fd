#include "models/layers/laws.hpp"

#include <algorithm>
#include <bit>

namespace vramlab::layers {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t power_of_two_within(std::int64_t value, std::int64_t most) {
  if (value >= most) return most;
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1))));
}

}  // namespace

ReductionBuffers column_sum(std::int64_t rows, std::int64_t columns, const CardLaws& card) {
  constexpr std::int64_t kThreads = 512;
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kLeastOfThread = 16;
  constexpr std::int64_t kMostOfThread = 256;
  std::int64_t vector = 4;  // outputs that a thread sums side by side
  while (columns % vector != 0) vector /= 2;
  const std::int64_t threads = kThreads / vector;
  const std::int64_t across = power_of_two_within(columns / vector, threads);
  const std::int64_t down = power_of_two_within(rows, threads);
  const std::int64_t first_width = std::min(across, kWarp);
  const std::int64_t height = std::min(down, threads / first_width);
  const std::int64_t width = std::min(across, threads / height);
  if (rows < height * kLeastOfThread && rows < kMostOfThread) return {};
  const std::int64_t each = divide_up(rows, height);
  const std::int64_t blocks = divide_up(columns / vector, width);
  const std::int64_t at_once = card.multiprocessors * (card.threads_each / (width * height));
  if (each < kMostOfThread || blocks > at_once) return {};
  const std::int64_t shares = std::max(std::min(divide_up(at_once, blocks), divide_up(each, kLeastOfThread)),
                                       divide_up(each, kMostOfThread));
  if (shares <= 1) return {};
  const auto single = static_cast<std::int64_t>(bytes_of(Number::float32));
  return {static_cast<Bytes>(product({single, columns, shares, width, vector})),
          static_cast<Bytes>(product({single, blocks}))};
}

Bytes half_attention_workspace(const AttentionShape& shape) {
  constexpr Bytes kConstant = 256;
  const std::int64_t rows = product({shape.batch, shape.heads, shape.queries});
  std::int64_t bytes = product({4, shape.query_elements()}) + product({4, rows});
  if (shape.kv_heads < shape.heads) {
    bytes += product({2, 2, shape.batch, shape.keys, shape.heads, shape.head_size});
  }
  return static_cast<Bytes>(bytes) + kConstant;
}

Bytes single_attention_workspace(const AttentionShape& shape) {
  constexpr std::int64_t kBlock = 64;
  return static_cast<Bytes>(product({4, shape.query_elements()}) +
                            product({16, shape.batch, shape.heads, divide_up(shape.queries, kBlock)}));
}

}  // namespace vramlab::layers
