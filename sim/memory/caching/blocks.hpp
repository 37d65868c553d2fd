// Blocks and segments, what a caching allocator's memory is made of (section 0), and the table they are kept
// in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/allocator.hpp"

namespace vramlab {

/// Position of a block in the allocator's table of blocks; also the value of its BlockId.
using BlockIndex = std::uint32_t;
inline constexpr BlockIndex kNoBlock = 0xFFFF'FFFF;

using SegmentIndex = std::uint32_t;

/// A bin of the fast free list.
using BinIndex = std::uint16_t;

/// Position of a pool in the allocator's table of pools: 2·group for small blocks, 2·group + 1 for large
/// ones. Group 0 holds the default pools, every other group one private pool.
using PoolIndex = std::uint16_t;

constexpr bool is_large_pool(PoolIndex pool) { return pool % 2 == 1; }
constexpr std::size_t group_of(PoolIndex pool) { return pool / 2; }
constexpr StatClass class_of(PoolIndex pool) {
  return is_large_pool(pool) ? StatClass::large_pool : StatClass::small_pool;
}

/// A contiguous piece of one segment: one cache line.
struct alignas(64) Block {
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;             ///< what the program asked for; stale while the block is free (R8.9)
  StreamId stream = 0;             ///< allocation stream, never changes
  BlockIndex previous = kNoBlock;  ///< neighbours in the segment, by address
  BlockIndex next = kNoBlock;
  BlockIndex smaller = kNoBlock;  ///< neighbours in its bin of the free list
  BlockIndex larger = kNoBlock;
  SegmentIndex segment = 0;
  PoolIndex pool = 0;
  std::uint16_t pending_events = 0;  ///< events of other streams that a deferred free waits for (R3.4)
  BinIndex bin = 0;                  ///< its bin of the free list, while it is in one
  bool live = false;                 ///< this table entry is a block
  bool allocated = false;            ///< held by the program
  bool cached = false;               ///< in a free list
  bool mapped = true;                ///< has memory behind it; false only in expandable segments
  bool expandable = false;           ///< belongs to an expandable segment
  bool has_stream_uses = false;      ///< other streams are recorded for it (R3.7)

  /// R0: a block with a neighbour, unmapped ones included.
  [[nodiscard]] bool is_split() const { return previous != kNoBlock || next != kNoBlock; }

  /// Freed by the program, but still waiting for other streams.
  [[nodiscard]] bool is_pending() const { return !allocated && (pending_events > 0 || has_stream_uses); }

  /// Neither held nor waiting: a cached block, or an unmapped one.
  [[nodiscard]] bool is_idle() const { return !allocated && pending_events == 0 && !has_stream_uses; }
};

static_assert(sizeof(Block) == 64);

/// One cudaMalloc result, or one reserved range that memory is mapped into.
struct Segment {
  Address base = 0;
  Bytes size = 0;  ///< of the allocation, or of the whole reserved range
  Bytes page = 0;  ///< unit of mapping; 0 for a plain segment
  StreamId stream = 0;
  BlockIndex head = kNoBlock;  ///< the block at `base`; the same one for the segment's whole life
  PoolIndex pool = 0;
  bool live = false;  ///< this table entry is a segment

  [[nodiscard]] bool is_expandable() const { return page != 0; }
};

/// All blocks by BlockIndex. Entries are used again, so indices stay small; references last until a block is
/// added. Every allocation and every free comes through here, so it is all inline.
class BlockTable {
 public:
  [[nodiscard]] Block& operator[](BlockIndex index) { return blocks_[index]; }
  [[nodiscard]] const Block& operator[](BlockIndex index) const { return blocks_[index]; }

  /// All entries, spare ones too (Block::live tells).
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  /// Entries that are not blocks.
  [[nodiscard]] std::size_t spare() const { return spares_; }
  [[nodiscard]] auto data() { return blocks_.data(); }
  [[nodiscard]] auto data() const { return blocks_.data(); }
  [[nodiscard]] auto begin() { return blocks_.begin(); }
  [[nodiscard]] auto end() { return blocks_.end(); }
  [[nodiscard]] auto begin() const { return blocks_.begin(); }
  [[nodiscard]] auto end() const { return blocks_.end(); }

  /// Whether `index` names a block.
  [[nodiscard]] bool holds(BlockIndex index) const { return index < blocks_.size() && blocks_[index].live; }

  BlockIndex add(const Block& block) {
    const BlockIndex index = spare_entry();
    blocks_[index] = block;
    return index;
  }

  void retire(BlockIndex index) {
    Block& block = blocks_[index];
    block.live = false;
    block.next = first_spare_;
    first_spare_ = index;
    ++spares_;
  }

  /// R3.2: the low part of a block that is in no list, [address, address + size), keeps the entry, so a
  /// segment's first block never changes it; the remainder is returned and keeps the stale requested size
  /// (R8.9).
  BlockIndex cut(BlockIndex index, Bytes size) {
    const BlockIndex rest = spare_entry();
    Block& low = blocks_[index];
    Block& high = blocks_[rest];
    // Field by field: a copy of the whole reads in pieces of 16 bytes what was just written in smaller ones,
    // which makes the processor wait.
    high = {.address = low.address + size,
            .size = low.size - size,
            .requested = low.requested,
            .stream = low.stream,
            .previous = index,
            .next = low.next,
            .segment = low.segment,
            .pool = low.pool,
            .live = true,
            .allocated = low.allocated,
            .mapped = low.mapped,
            .expandable = low.expandable};
    if (high.next != kNoBlock) blocks_[high.next].previous = rest;
    low.size = size;
    low.next = rest;
    return rest;
  }

  /// R3.6: `low` takes the room of its neighbour `high`, which is given up.
  void join(BlockIndex low, BlockIndex high) {
    Block& grown = blocks_[low];
    grown.size += blocks_[high].size;
    grown.next = blocks_[high].next;
    if (grown.next != kNoBlock) blocks_[grown.next].previous = low;
    retire(high);
  }

 private:
  BlockIndex spare_entry() {
    const BlockIndex index = first_spare_;
    if (index == kNoBlock) {
      blocks_.emplace_back();
      return static_cast<BlockIndex>(blocks_.size() - 1);
    }
    first_spare_ = blocks_[index].next;
    --spares_;
    return index;
  }

  std::vector<Block> blocks_;
  BlockIndex first_spare_ = kNoBlock;  // spare entries are linked by Block::next
  BlockIndex spares_ = 0;
};

}  // namespace vramlab
