// The structure that PyTorch's allocator itself has, as a yardstick: blocks on the heap, an ordered set of
// pointers to the cached ones, a hash map from address to block for the live ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>

#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/rounding.hpp"
#include "sim/memory/memory_stats.hpp"
#include "sim/memory/segments/segment_source.hpp"

namespace vramlab {

/// Only the rules that default settings on one stream reach: rounding, best fit, split, merge, counters. It
/// has less to do per call than CachingAllocator, and gives the same addresses.
class PointerSetAllocator {
 public:
  explicit PointerSetAllocator(SegmentSource& source) : source_{source} {}

  PointerSetAllocator(const PointerSetAllocator&) = delete;
  PointerSetAllocator& operator=(const PointerSetAllocator&) = delete;
  ~PointerSetAllocator() {
    for (const auto& [address, block] : live_) delete block;
    for (const auto& pool : free_) {
      for (const Block* block : pool) delete block;
    }
  }

  /// 0 if the source has no memory left.
  Address allocate(Bytes size) {
    const Bytes rounded = rounded_size(size, settings_);
    const StatClass c = is_small(rounded) ? StatClass::small_pool : StatClass::large_pool;
    Block* block = take_best_fit(rounded, c);
    if (block == nullptr) block = new_segment(rounded, c);
    if (block == nullptr) return 0;
    split(block, rounded, c);
    block->allocated = true;
    block->requested = size;
    live_.emplace(block->address, block);
    count(c, block, 1);
    return block->address;
  }

  void free(Address address) {
    const auto found = live_.find(address);
    Block* block = found->second;
    live_.erase(found);
    block->allocated = false;
    const StatClass c = block->pool;
    count(c, block, -1);
    std::int64_t splits = 0;
    std::int64_t split_bytes = 0;
    for (Block* neighbour : {block->previous, block->next}) {
      if (neighbour == nullptr || neighbour->allocated) continue;
      --splits;
      split_bytes -= static_cast<std::int64_t>(neighbour->size);
      absorb(block, neighbour);
    }
    free_[is_large(c)].insert(block);
    if (block->is_split()) ++splits, split_bytes += static_cast<std::int64_t>(block->size);
    stats_.inactive_split.change(c, splits);
    stats_.inactive_split_bytes.change(c, split_bytes);
  }

 private:
  struct Block {
    Address address = 0;
    Bytes size = 0;
    Bytes requested = 0;
    StreamId stream = 0;
    StatClass pool{};
    Block* previous = nullptr;
    Block* next = nullptr;
    bool allocated = false;
    [[nodiscard]] bool is_split() const { return previous != nullptr || next != nullptr; }
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
    }
  };
  static std::size_t is_large(StatClass c) { return c == StatClass::large_pool ? 1 : 0; }

  Block* take_best_fit(Bytes size, StatClass c) {
    auto& free = free_[is_large(c)];
    Block key{.size = size};
    const auto found = free.lower_bound(&key);
    if (found == free.end()) return nullptr;
    Block* block = *found;
    free.erase(found);
    return block;
  }

  Block* new_segment(Bytes rounded, StatClass c) {
    const Bytes size = segment_size(rounded, settings_);
    const auto base = source_.reserve(size);
    if (!base) return nullptr;
    stats_.segment.increase(c, 1);
    stats_.reserved_bytes.increase(c, static_cast<std::int64_t>(size));
    return new Block{.address = *base, .size = size, .pool = c};
  }

  void split(Block* block, Bytes size, StatClass c) {
    const bool was_split = block->is_split();
    const auto whole = static_cast<std::int64_t>(block->size);
    const Bytes rest = block->size - size;
    const bool cut = is_large(c) == 1 ? rest > kSmallLimit : rest >= kMinBlock;
    if (cut) {
      auto* high = new Block{*block};
      high->address += size;
      high->size = rest;
      high->previous = block;
      if (high->next != nullptr) high->next->previous = high;
      block->next = high;
      block->size = size;
      free_[is_large(c)].insert(high);
    }
    if (cut && was_split) {
      stats_.inactive_split_bytes.decrease(c, static_cast<std::int64_t>(size));
    } else if (cut) {
      stats_.inactive_split_bytes.increase(c, static_cast<std::int64_t>(rest));
      stats_.inactive_split.increase(c, 1);
    } else if (was_split) {
      stats_.inactive_split_bytes.decrease(c, whole);
      stats_.inactive_split.decrease(c, 1);
    }
  }

  // The freed block keeps its object, as in PyTorch; the neighbour's goes.
  void absorb(Block* block, Block* neighbour) {
    free_[is_large(block->pool)].erase(neighbour);
    if (neighbour == block->previous) {
      block->address = neighbour->address;
      block->previous = neighbour->previous;
      if (block->previous != nullptr) block->previous->next = block;
    } else {
      block->next = neighbour->next;
      if (block->next != nullptr) block->next->previous = block;
    }
    block->size += neighbour->size;
    delete neighbour;
  }

  void count(StatClass c, const Block* block, int sign) {
    const auto move = [&](StatArray& stat, Bytes amount) {
      const auto value = static_cast<std::int64_t>(amount);
      sign > 0 ? stat.increase(c, value) : stat.decrease(c, value);
    };
    move(stats_.allocation, 1);
    move(stats_.allocated_bytes, block->size);
    move(stats_.active, 1);
    move(stats_.active_bytes, block->size);
    move(stats_.requested_bytes, block->requested);
  }

  SegmentSource& source_;
  AllocatorSettings settings_;
  MemoryStats stats_;
  std::set<Block*, BySize> free_[2];
  std::unordered_map<Address, Block*> live_;
};

}  // namespace vramlab
