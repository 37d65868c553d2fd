// The cached blocks of one pool in the order of R0.1: by stream, then size, then address.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <variant>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/block.hpp"

namespace vramlab {

/// A cached block as a free list sees it.
struct FreeBlock {
  StreamId stream = 0;
  Bytes size = 0;
  Address address = 0;
  BlockIndex block = kNoBlock;

  [[nodiscard]] auto key() const { return std::tuple{stream, size, address}; }
  friend bool operator<(const FreeBlock& a, const FreeBlock& b) { return a.key() < b.key(); }
};

/// How `block`, at `index` of its table, stands in a free list.
inline FreeBlock free_entry(const Block& block, BlockIndex index) {
  return {block.stream, block.size, block.address, index};
}

/// The fast list: for each stream, bins of similar sizes, and a bitmap of the bins in use.
///
/// A power of two is divided in 32 bins, so a bin rarely holds more than a few blocks. They are linked from
/// the smallest to the largest, through the blocks themselves: the best fit is the head of a bin, a block
/// that leaves is not searched for, and one that comes walks past the smaller ones of its bin.
class BinnedFreeList {
 public:
  void insert(std::span<Block> blocks, BlockIndex index);
  void erase(std::span<Block> blocks, BlockIndex index);
  [[nodiscard]] BlockIndex first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) const;
  [[nodiscard]] BlockIndex next(std::span<const Block> blocks, const FreeBlock& position) const;
  [[nodiscard]] BlockIndex previous(std::span<const Block> blocks, const FreeBlock& position) const;
  void append_all(std::span<const Block> blocks, std::vector<BlockIndex>& out) const;

 private:
  static constexpr int kLog2BinsPerDoubling = 5;
  static constexpr std::size_t kBins = 1024;

  struct Bin {
    BlockIndex smallest = kNoBlock;
    BlockIndex largest = kNoBlock;
  };

  struct Lane {  ///< the blocks of one stream
    StreamId stream = 0;
    std::array<std::uint64_t, kBins / 64> occupied{};
    std::array<Bin, kBins> bins{};

    [[nodiscard]] std::size_t occupied_from(std::size_t bin) const;  ///< kBins if there is none
    [[nodiscard]] std::size_t occupied_before(std::size_t bin) const;
    [[nodiscard]] BlockIndex smallest_from(std::size_t bin) const;
  };

  static BinIndex bin_of(Bytes size);
  [[nodiscard]] const Lane* find_lane(StreamId stream) const;
  Lane& lane_of(StreamId stream);
  Lane& add_lane(StreamId stream);

  std::vector<Lane> lanes_;  // by ascending stream
};

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
  explicit FreeList(FreeListKind kind = FreeListKind::binned);

  /// Adds a block that is not in the list; its stream, size and address must not change while it is in.
  void insert(std::span<Block> blocks, BlockIndex index) {
    std::visit([&](auto& list) { list.insert(blocks, index); }, list_);
  }

  /// Removes a block. Throws InternalError if it is not in the list.
  void erase(std::span<Block> blocks, BlockIndex index) {
    std::visit([&](auto& list) { list.erase(blocks, index); }, list_);
  }

  /// The smallest block of `stream` with at least `size` bytes, the lowest address among equals (R2.2).
  [[nodiscard]] BlockIndex first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) const {
    return std::visit([&](const auto& list) { return list.first_not_less(blocks, stream, size); }, list_);
  }

  /// The first block of the same stream behind `position`, which need not be in the list, or kNoBlock.
  [[nodiscard]] BlockIndex next(std::span<const Block> blocks, const FreeBlock& position) const;

  /// The last block of the same stream before `position`, which need not be in the list, or kNoBlock.
  [[nodiscard]] BlockIndex previous(std::span<const Block> blocks, const FreeBlock& position) const;

  /// All blocks in the order of R0.1.
  [[nodiscard]] std::vector<BlockIndex> in_order(std::span<const Block> blocks) const;

 private:
  std::variant<BinnedFreeList, OrderedFreeList> list_;
};

}  // namespace vramlab
