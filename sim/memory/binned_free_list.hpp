// The fast free list: for each stream, bins of similar sizes. What every allocation and every free does is
// inline.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/block.hpp"
#include "sim/memory/free_block.hpp"

namespace vramlab {

/// The blocks of a list in bins of similar sizes, and a bitmap of the bins in use, for each stream.
///
/// A power of two is divided in 128 bins, so that a bin rarely holds more than one block of a mix of sizes: a
/// fit is found and a place taken without a walk whose length the processor would have to guess. The blocks
/// of a bin are linked from the smallest to the largest, through themselves: the best fit is the head of a
/// bin, a block that leaves is not searched for, and one that comes walks past the smaller ones of its bin.
class BinnedFreeList {
 public:
  void insert(std::span<Block> blocks, BlockIndex index) {
    Block& block = blocks[index];
    Lane& lane = lane_of(block.stream);
    const BinIndex at = bin_of(block.size);
    Bin& bin = lane.bins[at];
    const BlockIndex before = last_before(blocks, bin, block.size, block.address);
    const BlockIndex after = before == kNoBlock ? bin.smallest : blocks[before].larger;
    block.smaller = before;
    block.larger = after;
    block.bin = at;
    (before == kNoBlock ? bin.smallest : blocks[before].larger) = index;
    (after == kNoBlock ? bin.largest : blocks[after].smaller) = index;
    lane.occupied[at / 64] |= std::uint64_t{1} << (at % 64);
  }

  /// Of a block that is in the list.
  void erase(std::span<Block> blocks, BlockIndex index) {
    const Block& block = blocks[index];
    const BinIndex at = block.bin;
    Lane& lane = lane_of(block.stream);
    Bin& bin = lane.bins[at];
    (block.smaller == kNoBlock ? bin.smallest : blocks[block.smaller].larger) = block.larger;
    (block.larger == kNoBlock ? bin.largest : blocks[block.larger].smaller) = block.smaller;
    if (bin.smallest == kNoBlock) lane.occupied[at / 64] &= ~(std::uint64_t{1} << (at % 64));
  }

  [[nodiscard]] BlockIndex first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) const {
    const Lane* lane = find_lane(stream);
    if (lane == nullptr) return kNoBlock;
    const std::size_t bin = bin_of(size);
    for (BlockIndex at = lane->bins[bin].smallest; at != kNoBlock; at = blocks[at].larger) {
      if (blocks[at].size >= size) return at;
    }
    return lane->smallest_from(bin + 1);
  }

  [[nodiscard]] BlockIndex next(std::span<const Block> blocks, const FreeBlock& position) const;
  [[nodiscard]] BlockIndex previous(std::span<const Block> blocks, const FreeBlock& position) const;
  void append_all(std::span<const Block> blocks, std::vector<BlockIndex>& out) const;

 private:
  static constexpr int kLog2BinsPerDoubling = 7;
  static constexpr std::size_t kBins = 2048;

  struct Bin {
    BlockIndex smallest = kNoBlock;
    BlockIndex largest = kNoBlock;
  };

  struct Lane {  ///< the blocks of one stream
    StreamId stream = 0;
    std::array<std::uint64_t, kBins / 64> occupied{};
    std::array<Bin, kBins> bins{};

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
  static BlockIndex last_before(std::span<const Block> blocks, const Bin& bin, Bytes size, Address address) {
    if (bin.largest == kNoBlock || is_before(blocks[bin.largest], size, address)) return bin.largest;
    BlockIndex before = kNoBlock;
    for (BlockIndex at = bin.smallest; is_before(blocks[at], size, address); at = blocks[at].larger)
      before = at;
    return before;
  }

  [[nodiscard]] const Lane* find_lane(StreamId stream) const {
    if (!lanes_.empty() && lanes_.front().stream == stream) [[likely]]  // most programs use one stream
      return lanes_.data();
    return find_later_lane(stream);
  }
  Lane& lane_of(StreamId stream) {
    const Lane* lane = find_lane(stream);
    return lane != nullptr ? const_cast<Lane&>(*lane) : add_lane(stream);
  }
  [[nodiscard]] const Lane* find_later_lane(StreamId stream) const;
  Lane& add_lane(StreamId stream);

  std::vector<Lane> lanes_;  // by ascending stream
};

}  // namespace vramlab
