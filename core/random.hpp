// Random numbers that are equal on every machine: integers only, from a seed.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace vramlab {

/// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  /// `low` to `high`, both included. The bias of the remainder is below 1e-6 for ranges below 2^44.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }

  /// One of `items`, as often as its `weight` says, compared with the others.
  template <class Item>
  const Item& one_of(const std::vector<Item>& items, std::int64_t Item::*weight) {
    std::int64_t sum = 0;
    for (const Item& item : items) sum += item.*weight;
    std::int64_t drawn = between(0, sum - 1);
    const Item* item = items.data();
    while (drawn >= item->*weight) drawn -= (item++)->*weight;
    return *item;
  }

  /// Fisher-Yates.
  template <class Value>
  void shuffle(std::span<Value> values) {
    for (std::size_t left = values.size(); left > 1; --left) {
      std::swap(values[left - 1], values[static_cast<std::size_t>(next() % left)]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace vramlab
