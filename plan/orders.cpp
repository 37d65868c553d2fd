#include "plan/orders.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace vramlab {
namespace {

// The binary logarithm in 1/65536, n > 0. Squaring a number between 1 and 2 doubles its logarithm, whose
// whole part is the next digit.
std::int64_t log2_fixed(std::uint64_t n) {
  const auto whole = static_cast<int>(std::bit_width(n)) - 1;
  std::uint64_t mantissa = whole > 31 ? n >> (whole - 31) : n << (31 - whole);
  std::int64_t log = whole;
  for (int digit = 0; digit < 16; ++digit) {
    mantissa = (mantissa * mantissa) >> 31;
    log *= 2;
    if (mantissa >> 32 != 0) {
      mantissa >>= 1;
      ++log;
    }
  }
  return log;
}

/// The highest value of any stretch of a row.
class Maxima {
 public:
  explicit Maxima(const std::vector<Bytes>& row) : rows_{row} {
    for (std::size_t width = 1; 2 * width <= row.size(); width *= 2) {
      const std::vector<Bytes>& below = rows_.back();
      std::vector<Bytes> above(below.size() - width);
      for (std::size_t i = 0; i < above.size(); ++i) above[i] = std::max(below[i], below[i + width]);
      rows_.push_back(std::move(above));
    }
  }

  [[nodiscard]] Bytes of(const Timeline::Span& span) const {
    const auto row = static_cast<std::size_t>(std::bit_width(span.end - span.begin) - 1);
    return std::max(rows_[row][span.begin], rows_[row][span.end - (std::uint32_t{1} << row)]);
  }

 private:
  std::vector<std::vector<Bytes>> rows_;  ///< of stretches of 1, 2, 4, … values
};

}  // namespace

Orders::Orders(const std::vector<Buffer>& buffers, const Timeline& timeline)
    : buffers_(buffers), spans_(timeline.spans), trouble_(timeline.load.size()) {
  const Maxima maxima(timeline.load);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Timeline::Span& span = timeline.spans[i];
    size_.push_back(log2_fixed(buffers[i].size + 1));
    life_.push_back(log2_fixed(span.end - span.begin));
    load_.push_back(log2_fixed(maxima.of(span) + 1));
  }
}

std::vector<std::int64_t> Orders::scores(const OrderWeights& weights, Random& random) const {
  std::vector<std::uint64_t> trouble(trouble_.size() + 1);  // before each piece
  std::partial_sum(trouble_.begin(), trouble_.end(), trouble.begin() + 1);
  std::vector<std::int64_t> scores(buffers_.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = weights.size * size_[i] + weights.life * life_[i] + weights.load * load_[i];
    if (weights.noise > 0) scores[i] += weights.noise * random.between(0, 4 * 65536);
    if (weights.trouble == 0) continue;
    const std::uint64_t met = trouble[spans_[i].end] - trouble[spans_[i].begin];
    const std::uint64_t pieces = spans_[i].end - spans_[i].begin;
    scores[i] +=
        weights.trouble * (weights.on_average ? log2_fixed(pieces + met) - life_[i] : log2_fixed(1 + met));
  }
  return scores;
}

std::vector<std::uint32_t> Orders::order(const OrderWeights& weights, Random& random) const {
  const std::vector<std::int64_t> score = scores(weights, random);
  std::vector<std::uint32_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (score[a] != score[b]) return score[a] > score[b];
    if (buffers_[a].size != buffers_[b].size) return buffers_[a].size > buffers_[b].size;
    return a < b;
  });
  return order;
}

}  // namespace vramlab
