// The blocks of one caching allocator: where they are kept, and how they are cut and joined (R3.2, R3.6).
#pragma once

#include <cstddef>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/memory/block.hpp"

namespace vramlab {

/// All blocks by BlockIndex. Entries are used again, so indices stay small; references last until a block is
/// added. Every allocation and every free comes through here, so it is all inline.
class BlockTable {
 public:
  [[nodiscard]] Block& operator[](BlockIndex index) { return blocks_[index]; }
  [[nodiscard]] const Block& operator[](BlockIndex index) const { return blocks_[index]; }

  /// All entries, spare ones too (Block::live tells).
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  /// Entries that are no blocks.
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
