// In which order buffers are packed: by what they are, and by what went wrong before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "plan/buffers.hpp"

namespace vramlab {

/// What counts how much in an order, in sixteenths: exponents of a product that is largest for the first
/// buffer.
struct OrderWeights {
  std::int64_t size = 0;
  std::int64_t life = 0;   ///< how long the buffer lives, in pieces of the timeline
  std::int64_t load = 0;   ///< the highest load that it lives through
  std::int64_t noise = 0;  ///< up to a factor of 16
  /// How often it went wrong while the buffer lived, in all or, with `on_average`, by piece of the timeline.
  std::int64_t trouble = 0;
  bool on_average = false;
};

/// Orders of the same buffers. Integers only, so that they are the same on every machine. What it is made of
/// must outlive it.
class Orders {
 public:
  Orders(const std::vector<Buffer>& buffers, const Timeline& timeline);

  /// Something went wrong in a piece of the timeline.
  void add_trouble(std::size_t piece) { ++trouble_[piece]; }

  /// The higher, the sooner; by buffer.
  [[nodiscard]] std::vector<std::int64_t> scores(const OrderWeights& weights, Random& random) const;
  /// Every buffer once; equal scores by size, then as given.
  [[nodiscard]] std::vector<std::uint32_t> order(const OrderWeights& weights, Random& random) const;

 private:
  const std::vector<Buffer>& buffers_;
  // Logarithms, in 1/65536.
  std::vector<std::int64_t> size_;
  std::vector<std::int64_t> life_;
  std::vector<std::int64_t> load_;
  const std::vector<Timeline::Span>& spans_;
  std::vector<std::uint32_t> trouble_;  ///< by piece
};

}  // namespace vramlab
