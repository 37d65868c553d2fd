#include "recordings/alignment/common_subsequence.hpp"

#include <algorithm>
#include <cstdlib>

namespace vramlab {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
using Keys = std::span<const std::uint32_t>;

constexpr std::ptrdiff_t kMostDifferences = 2048;

/// One search from the beginning of both.
class Search {
 public:
  Search(Keys a, Keys b)
      : a_(a), b_(b), n_(static_cast<std::ptrdiff_t>(a.size())), m_(static_cast<std::ptrdiff_t>(b.size())) {}

  /// Goes on until both end, or too many differences; then `reached` says how far it came.
  Pairs run() {
    for (std::ptrdiff_t d = 0; d <= std::min(n_ + m_, kMostDifferences); ++d) {
      ends_.emplace_back(static_cast<std::size_t>(2 * d + 1));
      for (std::ptrdiff_t k = -d; k <= d; k += 2) {
        std::ptrdiff_t x = start(d, k);
        std::ptrdiff_t y = x - k;
        while (x < n_ && y < m_ && a_[at(x)] == b_[at(y)]) {
          ++x;
          ++y;
        }
        end(d, k) = x;
        if (x <= n_ && y <= m_ && is_better(x, y)) keep(d, k, x, y);
        if (x >= n_ && y >= m_) return way_back(d, k, x);
      }
    }
    return way_back(best_d_, best_k_, best_x_);
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> reached() const { return {at(best_x_), at(best_y_)}; }

 private:
  static std::size_t at(std::ptrdiff_t place) { return static_cast<std::size_t>(place); }
  std::ptrdiff_t& end(std::ptrdiff_t d, std::ptrdiff_t k) { return ends_[at(d)][at(k + d)]; }

  [[nodiscard]] bool comes_down(std::ptrdiff_t d, std::ptrdiff_t k) {
    return k == -d || (k != d && end(d - 1, k - 1) < end(d - 1, k + 1));
  }
  std::ptrdiff_t start(std::ptrdiff_t d, std::ptrdiff_t k) {
    if (d == 0) return 0;
    return comes_down(d, k) ? end(d - 1, k + 1) : end(d - 1, k - 1) + 1;
  }
  // Of two that got as far, the one that left as little of either.
  [[nodiscard]] bool is_better(std::ptrdiff_t x, std::ptrdiff_t y) const {
    const std::ptrdiff_t sum = best_x_ + best_y_;
    return x + y > sum || (x + y == sum && std::abs(x - y) < std::abs(best_x_ - best_y_));
  }
  void keep(std::ptrdiff_t d, std::ptrdiff_t k, std::ptrdiff_t x, std::ptrdiff_t y) {
    best_d_ = d;
    best_k_ = k;
    best_x_ = x;
    best_y_ = y;
  }
  Pairs way_back(std::ptrdiff_t d, std::ptrdiff_t k, std::ptrdiff_t x) {
    Pairs pairs;
    for (; d >= 0; --d) {
      for (const std::ptrdiff_t from = start(d, k); x > from; --x)
        pairs.emplace_back(at(x - 1), at(x - 1 - k));
      if (d == 0) break;
      if (comes_down(d, k)) {
        ++k;
      } else {
        --k;
        --x;
      }
    }
    std::ranges::reverse(pairs);
    return pairs;
  }

  Keys a_;
  Keys b_;
  std::ptrdiff_t n_;
  std::ptrdiff_t m_;
  std::vector<std::vector<std::ptrdiff_t>>
      ends_;  ///< by number of differences and diagonal: the furthest place in a
  std::ptrdiff_t best_d_ = 0;
  std::ptrdiff_t best_k_ = 0;
  std::ptrdiff_t best_x_ = 0;
  std::ptrdiff_t best_y_ = 0;
};

}  // namespace

Pairs common_subsequence(Keys a, Keys b) {
  Pairs pairs;
  std::size_t from_a = 0;
  std::size_t from_b = 0;
  while (from_a < a.size() && from_b < b.size()) {
    Search search(a.subspan(from_a), b.subspan(from_b));
    for (const auto& [x, y] : search.run()) pairs.emplace_back(from_a + x, from_b + y);
    const auto [x, y] = search.reached();
    from_a += x;
    from_b += y;
  }
  return pairs;
}

}  // namespace vramlab
