// The cached blocks of one pool in the order of R0.1: by stream, then size, then address.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/binned_free_list.hpp"
#include "sim/memory/block.hpp"
#include "sim/memory/free_block.hpp"

namespace vramlab {

/// The reference: an ordered set, slow and plain. Tests hold the fast list against it.
class OrderedFreeList {
 public:
  void insert(std::span<const Block> blocks, BlockIndex index);
  void erase(std::span<const Block> blocks, BlockIndex index);
  [[nodiscard]] BlockIndex first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) const;
  [[nodiscard]] BlockIndex next(std::span<const Block> blocks, const FreeBlock& position) const;
  [[nodiscard]] BlockIndex previous(std::span<const Block> blocks, const FreeBlock& position) const;
  void append_all(std::span<const Block> blocks, std::vector<BlockIndex>& out) const;

 private:
  std::set<FreeBlock> blocks_;
};

enum class FreeListKind : std::uint8_t { binned, ordered };

/// Either list behind one face. `blocks` is the table that the indices point into, always the same one.
class FreeList {
 public:
  explicit FreeList(FreeListKind kind = FreeListKind::binned) : kind_(kind) {}

  /// Adds a block that is not in the list; its stream, size and address must not change while it is in.
  void insert(std::span<Block> blocks, BlockIndex index) {
    blocks[index].cached = true;
    if (kind_ == FreeListKind::binned) [[likely]]
      return binned_.insert(blocks, index);
    ordered_.insert(blocks, index);
  }

  /// Removes a block. Throws InternalError if it is not in the list.
  void erase(std::span<Block> blocks, BlockIndex index) {
    if (!blocks[index].cached) [[unlikely]]
      refuse();
    blocks[index].cached = false;
    if (kind_ == FreeListKind::binned) [[likely]]
      return binned_.erase(blocks, index);
    ordered_.erase(blocks, index);
  }

  /// The smallest block of `stream` with at least `size` bytes, the lowest address among equals (R2.2).
  [[nodiscard]] BlockIndex first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) const {
    if (kind_ == FreeListKind::binned) [[likely]]
      return binned_.first_not_less(blocks, stream, size);
    return ordered_.first_not_less(blocks, stream, size);
  }

  /// The first block of the same stream behind `position`, which need not be in the list, or kNoBlock.
  [[nodiscard]] BlockIndex next(std::span<const Block> blocks, const FreeBlock& position) const;

  /// The last block of the same stream before `position`, which need not be in the list, or kNoBlock.
  [[nodiscard]] BlockIndex previous(std::span<const Block> blocks, const FreeBlock& position) const;

  /// All blocks in the order of R0.1.
  [[nodiscard]] std::vector<BlockIndex> in_order(std::span<const Block> blocks) const;

 private:
  [[noreturn]] static void refuse();

  FreeListKind kind_;
  BinnedFreeList binned_;  // the list of the other kind stays empty
  OrderedFreeList ordered_;
};

}  // namespace vramlab
