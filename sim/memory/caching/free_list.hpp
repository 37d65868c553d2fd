// The cached blocks of one pool in the order of R0.1: by stream, then size, then address.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/blocks.hpp"

namespace vramlab {

/// A place in a free list.
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

/// The reference: an ordered set, plain, small where there is little in it, and slow. Tests hold the fast
/// list against it.
class OrderedFreeList {
 public:
  void insert(std::span<const Block> blocks, BlockIndex index);
  void erase(std::span<const Block> blocks, BlockIndex index);
  [[nodiscard]] BlockIndex first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) const;
  [[nodiscard]] BlockIndex next(std::span<const Block> blocks, const FreeBlock& position) const;
  [[nodiscard]] BlockIndex previous(std::span<const Block> blocks, const FreeBlock& position) const;
  /// Those of the streams from `from` to before `to`.
  void append_all(std::vector<BlockIndex>& out, StreamId from = 0, std::optional<StreamId> to = {}) const;

 private:
  std::set<FreeBlock> blocks_;
};

/// The fast free list: for each stream the blocks in bins of similar sizes, and a bitmap of the bins in use.
/// What every allocation and every free does is inline.
///
/// A power of two is divided in 128 bins, so that a bin rarely holds more than one block of a mix of sizes: a
/// fit is found and a place taken without a walk whose length the processor would have to guess. The blocks
/// of a bin are linked from the smallest to the largest, through themselves: the best fit is the head of a
/// bin, a block that leaves is not searched for, and one that comes walks past the smaller ones of its bin. A
/// bin of very many blocks gets an ordered index until it is empty. The bins take 16 KiB: streams beyond the
/// first few share an ordered set.
class BinnedFreeList {
 public:
  void insert(std::span<Block> blocks, BlockIndex index) {
    Block& block = blocks[index];
    Lane* const found = lane_to_fill(block.stream);
    if (found == nullptr) [[unlikely]]
      return other_streams_.insert(blocks, index);
    Lane& lane = *found;
    const BinIndex at = bin_of(block.size);
    Bin& bin = lane.bins[at];
    const BlockIndex before = last_before(blocks, lane, at, block.size, block.address);
    const BlockIndex after = before == kNoBlock ? bin.smallest : blocks[before].larger;
    block.smaller = before;
    block.larger = after;
    block.bin = at;
    (before == kNoBlock ? bin.smallest : blocks[before].larger) = index;
    (after == kNoBlock ? bin.largest : blocks[after].smaller) = index;
    lane.occupied[at / 64] |= std::uint64_t{1} << (at % 64);
    if (lane.is_indexed(at)) [[unlikely]]
      add_to_index(lane, at, block, index);
  }

  /// Of a block that is in the list.
  void erase(std::span<Block> blocks, BlockIndex index) {
    const Block& block = blocks[index];
    const BinIndex at = block.bin;
    Lane* const found = find_lane(block.stream);
    if (found == nullptr) [[unlikely]]
      return other_streams_.erase(blocks, index);
    Lane& lane = *found;
    Bin& bin = lane.bins[at];
    (block.smaller == kNoBlock ? bin.smallest : blocks[block.smaller].larger) = block.larger;
    (block.larger == kNoBlock ? bin.largest : blocks[block.larger].smaller) = block.smaller;
    if (bin.smallest == kNoBlock) lane.occupied[at / 64] &= ~(std::uint64_t{1} << (at % 64));
    if (lane.is_indexed(at)) [[unlikely]]
      remove_from_index(lane, at, block);
  }

  [[nodiscard]] BlockIndex first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) {
    Lane* const lane = find_lane(stream);
    if (lane == nullptr) [[unlikely]]
      return other_streams_.first_not_less(blocks, stream, size);
    const BinIndex bin = bin_of(size);
    int steps = 0;
    for (BlockIndex at = lane->bins[bin].smallest; at != kNoBlock; at = blocks[at].larger) {
      if (blocks[at].size >= size) return at;
      if (++steps > kLongWalk || lane->is_indexed(bin)) [[unlikely]]
        return first_of_long_bin(blocks, *lane, bin, size);
    }
    return lane->smallest_from(bin + std::size_t{1});
  }

  [[nodiscard]] BlockIndex next(std::span<const Block> blocks, const FreeBlock& position);
  [[nodiscard]] BlockIndex previous(std::span<const Block> blocks, const FreeBlock& position);
  void append_all(std::span<const Block> blocks, std::vector<BlockIndex>& out) const;

  /// Streams and blocks of long bins that were walked past, ever: what is to stay small however many there
  /// are.
  [[nodiscard]] std::uint64_t inspected() const { return inspected_; }

 private:
  static constexpr int kLog2BinsPerDoubling = 7;
  static constexpr std::size_t kBins = 2048;
  static constexpr std::size_t kMostLanes = 8;
  static constexpr int kLongWalk = 32;  // blocks

  /// The blocks of a long bin in their order.
  using Index = std::map<std::pair<Bytes, Address>, BlockIndex>;

  struct Bin {
    BlockIndex smallest = kNoBlock;
    BlockIndex largest = kNoBlock;
  };

  struct Lane {  ///< the blocks of one stream
    StreamId stream = 0;
    std::array<std::uint64_t, kBins / 64> occupied{};
    std::array<Bin, kBins> bins{};
    std::array<std::uint64_t, kBins / 64> indexed{};  ///< bins that are long
    std::map<BinIndex, Index> indices;                ///< of these

    [[nodiscard]] bool is_indexed(std::size_t bin) const {
      return (indexed[bin / 64] >> (bin % 64) & 1) != 0;
    }

    /// kBins if there is none.
    [[nodiscard]] std::size_t occupied_from(std::size_t bin) const {
      std::size_t word = bin / 64;
      if (word >= occupied.size()) return kBins;
      std::uint64_t bits = occupied[word] & (~std::uint64_t{0} << (bin % 64));
      while (bits == 0) {
        if (++word == occupied.size()) return kBins;
        bits = occupied[word];
      }
      return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    }
    [[nodiscard]] std::size_t occupied_before(std::size_t bin) const;
    [[nodiscard]] BlockIndex smallest_from(std::size_t bin) const {
      const std::size_t found = occupied_from(bin);
      return found == kBins ? kNoBlock : bins[found].smallest;
    }
  };

  // Small sizes have a bin each; above, every power of two has 128, up to 2 GiB. Never decreases with the
  // size, so the order of bins is the order of sizes; what is too large for the table shares the last bin.
  static BinIndex bin_of(Bytes size) {
    constexpr Bytes kPerDoubling = Bytes{1} << kLog2BinsPerDoubling;
    const Bytes units = size / 512;
    if (units < kPerDoubling) return static_cast<BinIndex>(units);
    const int doublings = static_cast<int>(std::bit_width(units)) - kLog2BinsPerDoubling;  // at least 1
    const Bytes bin = kPerDoubling * static_cast<Bytes>(doublings - 1) + (units >> (doublings - 1));
    return static_cast<BinIndex>(std::min<Bytes>(bin, kBins - 1));
  }

  static bool is_before(const Block& block, Bytes size, Address address) {
    return block.size != size ? block.size < size : block.address < address;
  }

  // The block of a bin behind which (size, address) belongs; kNoBlock if it belongs at the head. Blocks that
  // come in ascending order are met at the tail, all others by walking from the head.
  BlockIndex last_before(std::span<const Block> blocks, Lane& lane, BinIndex place, Bytes size,
                         Address address) {
    const Bin& bin = lane.bins[place];
    if (bin.largest == kNoBlock || is_before(blocks[bin.largest], size, address)) return bin.largest;
    BlockIndex before = kNoBlock;
    int steps = 0;
    for (BlockIndex at = bin.smallest; is_before(blocks[at], size, address); at = blocks[at].larger) {
      before = at;
      if (++steps > kLongWalk || lane.is_indexed(place)) [[unlikely]]
        return last_before_in_long_bin(blocks, lane, place, size, address);
    }
    return before;
  }

  const Index& index_of(std::span<const Block> blocks, Lane& lane, BinIndex bin);
  BlockIndex first_of_long_bin(std::span<const Block> blocks, Lane& lane, BinIndex bin, Bytes size);
  BlockIndex last_before_in_long_bin(std::span<const Block> blocks, Lane& lane, BinIndex bin, Bytes size,
                                     Address address);
  static void add_to_index(Lane& lane, BinIndex bin, const Block& block, BlockIndex index);
  static void remove_from_index(Lane& lane, BinIndex bin, const Block& block);

  /// Null for a stream whose blocks are in `other_streams_`, and for one without any.
  [[nodiscard]] Lane* find_lane(StreamId stream) {
    if (!lanes_.empty() && lanes_.front().stream == stream) [[likely]]  // most programs use one stream
      return lanes_.data();
    return find_later_lane(stream);
  }
  Lane* lane_to_fill(StreamId stream) {
    Lane* const lane = find_lane(stream);
    return lane != nullptr || lanes_.size() == kMostLanes ? lane : &add_lane(stream);
  }
  [[nodiscard]] Lane* find_later_lane(StreamId stream);
  Lane& add_lane(StreamId stream);

  std::vector<Lane> lanes_;  // by ascending stream
  OrderedFreeList other_streams_;
  std::uint64_t inspected_ = 0;
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
  [[nodiscard]] BlockIndex first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) {
    if (kind_ == FreeListKind::binned) [[likely]]
      return binned_.first_not_less(blocks, stream, size);
    return ordered_.first_not_less(blocks, stream, size);
  }

  /// The first block of the same stream behind `position`, which need not be in the list, or kNoBlock.
  [[nodiscard]] BlockIndex next(std::span<const Block> blocks, const FreeBlock& position);

  /// The last block of the same stream before `position`, which need not be in the list, or kNoBlock.
  [[nodiscard]] BlockIndex previous(std::span<const Block> blocks, const FreeBlock& position);

  [[nodiscard]] std::uint64_t inspected() const { return binned_.inspected(); }

  /// All blocks in the order of R0.1.
  [[nodiscard]] std::vector<BlockIndex> in_order(std::span<const Block> blocks) const;

 private:
  [[noreturn]] static void refuse();

  FreeListKind kind_;
  BinnedFreeList binned_;  // the list of the other kind stays empty
  OrderedFreeList ordered_;
};

}  // namespace vramlab
