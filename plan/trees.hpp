// The two trees of a packing pass: which buffer comes next in a valley, and how high each piece of time must
// still grow.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace vramlab {

/// Items in a row, each with a rank and an end; finds the least rank among those of a stretch that end by a
/// given time.
class RankTree {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Item {
    std::uint32_t rank = kNone;
    std::uint32_t end = kNone;
  };

  void assign(const std::vector<Item>& items) {
    leaves_ = std::bit_ceil(std::max<std::size_t>(items.size(), 1));
    nodes_.assign(2 * leaves_, {});
    std::copy(items.begin(), items.end(), nodes_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t node = leaves_ - 1; node > 0; --node) pull(node);
  }

  void remove(std::size_t item) {
    std::size_t node = leaves_ + item;
    nodes_[node] = {};
    while (node >>= 1) pull(node);
  }

  /// kNone if there is none. The stretch is `from` until before `to`.
  [[nodiscard]] std::uint32_t least(std::size_t from, std::size_t to, std::uint32_t end) const {
    std::uint32_t best = kNone;
    if (from < to) descend(1, 0, leaves_, {from, to, end}, best);
    return best;
  }

 private:
  struct Query {
    std::size_t from, to;
    std::uint32_t end;
  };

  void pull(std::size_t node) {
    const Item& a = nodes_[2 * node];
    const Item& b = nodes_[2 * node + 1];
    nodes_[node] = {std::min(a.rank, b.rank), std::min(a.end, b.end)};
  }

  // A subtree whose best could not help is left out; the better half first makes that the rule.
  void descend(std::size_t node, std::size_t low, std::size_t high, const Query& query,
               std::uint32_t& best) const {
    if (high <= query.from || low >= query.to) return;
    if (nodes_[node].rank >= best || nodes_[node].end > query.end) return;
    if (high - low == 1) {
      best = nodes_[node].rank;
      return;
    }
    const std::size_t middle = low + (high - low) / 2;
    const bool left_first = nodes_[2 * node].rank <= nodes_[2 * node + 1].rank;
    if (left_first) descend(2 * node, low, middle, query, best);
    descend(2 * node + 1, middle, high, query, best);
    if (!left_first) descend(2 * node, low, middle, query, best);
  }

  std::size_t leaves_ = 1;
  std::vector<Item> nodes_;
};

/// How high each piece of time will be at least: what lies there, what was wasted there, and what is still to
/// come. Bytes up to 2^62 in all.
class NeedTree {
 public:
  void assign(const std::vector<Bytes>& load) {
    leaves_ = std::bit_ceil(std::max<std::size_t>(load.size(), 1));
    most_.assign(2 * leaves_, kDone);
    added_.assign(2 * leaves_, 0);
    to_come_.assign(load.size() + 1, 0);
    Bytes before = 0;
    for (std::size_t piece = 0; piece < load.size(); ++piece) {
      most_[leaves_ + piece] = static_cast<std::int64_t>(load[piece]);
      change(piece, load[piece] - std::exchange(before, load[piece]));
    }
    for (std::size_t node = leaves_ - 1; node > 0; --node) pull(node);
  }

  /// The place of `bytes` that were to come from `begin` until before `end` is known.
  void settle(std::size_t begin, std::size_t end, Bytes bytes) {
    change(begin, Bytes{0} - bytes);
    if (end + 1 < to_come_.size()) change(end, bytes);
  }

  void waste(std::size_t begin, std::size_t end, Bytes bytes) {
    add(1, 0, leaves_, {begin, end, static_cast<std::int64_t>(bytes)});
  }

  /// A piece where something is still to come and that cannot stay below `bound`; the number of pieces if
  /// there is none.
  std::size_t reaching(Bytes bound) {
    while (most_[1] >= static_cast<std::int64_t>(bound)) {
      std::int64_t above = added_[1];
      std::size_t node = 1;
      while (node < leaves_) {
        node = 2 * node + (most_[2 * node] + above >= static_cast<std::int64_t>(bound) ? 0 : 1);
        above += added_[node];
      }
      if (to_come(node - leaves_) > 0) return node - leaves_;
      most_[node] = kDone;  // what is wasted above the last buffer of a piece does not count
      while (node >>= 1) pull(node);
    }
    return to_come_.size() - 1;
  }

 private:
  static constexpr std::int64_t kDone = std::numeric_limits<std::int64_t>::min() / 2;

  struct Waste {
    std::size_t begin, end;
    std::int64_t bytes;
  };

  void pull(std::size_t node) { most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node]; }

  void add(std::size_t node, std::size_t low, std::size_t high, const Waste& waste) {
    if (high <= waste.begin || low >= waste.end) return;
    if (waste.begin <= low && high <= waste.end) {
      most_[node] += waste.bytes;
      added_[node] += waste.bytes;
      return;
    }
    const std::size_t middle = low + (high - low) / 2;
    add(2 * node, low, middle, waste);
    add(2 * node + 1, middle, high, waste);
    pull(node);
  }

  // A Fenwick tree of differences: the sum up to a piece is what is to come there. Sums wrap around and back.
  void change(std::size_t piece, Bytes by) {
    for (std::size_t i = piece + 1; i < to_come_.size(); i += i & (~i + 1)) to_come_[i] += by;
  }
  [[nodiscard]] Bytes to_come(std::size_t piece) const {
    Bytes sum = 0;
    for (std::size_t i = piece + 1; i > 0; i -= i & (~i + 1)) sum += to_come_[i];
    return sum;
  }

  std::size_t leaves_ = 1;
  std::vector<std::int64_t> most_;   ///< of a subtree, with `added_` of it and below
  std::vector<std::int64_t> added_;  ///< to all of a subtree
  std::vector<Bytes> to_come_;
};

}  // namespace vramlab
