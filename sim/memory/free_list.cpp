#include "sim/memory/free_list.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

#include "sim/core/error.hpp"

namespace vramlab {

// Small sizes have a bin each; above, every power of two has 32. Never decreases with the size, so the order
// of bins is the order of sizes; what is too large for the table shares the last bin.
BinIndex BinnedFreeList::bin_of(Bytes size) {
  constexpr Bytes kPerDoubling = Bytes{1} << kLog2BinsPerDoubling;
  const Bytes units = size / 512;
  if (units < kPerDoubling) return static_cast<BinIndex>(units);
  const int doublings = static_cast<int>(std::bit_width(units)) - kLog2BinsPerDoubling;  // at least 1
  const Bytes bin = kPerDoubling * static_cast<Bytes>(doublings - 1) + (units >> (doublings - 1));
  return static_cast<BinIndex>(std::min<Bytes>(bin, kBins - 1));
}

std::size_t BinnedFreeList::Lane::occupied_from(std::size_t bin) const {
  std::size_t word = bin / 64;
  if (word >= occupied.size()) return kBins;
  std::uint64_t bits = occupied[word] & (~std::uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == occupied.size()) return kBins;
    bits = occupied[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

std::size_t BinnedFreeList::Lane::occupied_before(std::size_t bin) const {
  std::size_t word = bin / 64;
  std::uint64_t bits = bin % 64 == 0 ? 0 : occupied[word] & (~std::uint64_t{0} >> (64 - bin % 64));
  while (bits == 0) {
    if (word == 0) return kBins;
    bits = occupied[--word];
  }
  return word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(bits));
}

const BinnedFreeList::Lane* BinnedFreeList::find_lane(StreamId stream) const {
  for (const Lane& lane : lanes_) {
    if (lane.stream == stream) return &lane;
  }
  return nullptr;
}

BinnedFreeList::Lane& BinnedFreeList::lane_of(StreamId stream) {
  for (Lane& lane : lanes_) {
    if (lane.stream == stream) return lane;
  }
  return add_lane(stream);
}

BinnedFreeList::Lane& BinnedFreeList::add_lane(StreamId stream) {
  const auto after =
      std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return l.stream > stream; });
  Lane lane;
  lane.stream = stream;
  return *lanes_.insert(after, std::move(lane));
}

BlockIndex BinnedFreeList::Lane::smallest_from(std::size_t bin) const {
  const std::size_t found = occupied_from(bin);
  return found == kBins ? kNoBlock : bins[found].smallest;
}

namespace {

bool is_before(const Block& block, Bytes size, Address address) {
  return block.size != size ? block.size < size : block.address < address;
}

// The block of a bin behind which (size, address) belongs; kNoBlock if it belongs at the head. Blocks that
// come in ascending order are met at the tail, all others by walking from the head.
BlockIndex last_before(std::span<const Block> blocks, BlockIndex smallest, BlockIndex largest, Bytes size,
                       Address address) {
  if (largest == kNoBlock || is_before(blocks[largest], size, address)) return largest;
  BlockIndex before = kNoBlock;
  for (BlockIndex at = smallest; is_before(blocks[at], size, address); at = blocks[at].larger) before = at;
  return before;
}

}  // namespace

void BinnedFreeList::insert(std::span<Block> blocks, BlockIndex index) {
  Block& block = blocks[index];
  Lane& lane = lane_of(block.stream);
  const BinIndex at = bin_of(block.size);
  Bin& bin = lane.bins[at];
  const BlockIndex before = last_before(blocks, bin.smallest, bin.largest, block.size, block.address);
  const BlockIndex after = before == kNoBlock ? bin.smallest : blocks[before].larger;
  block.smaller = before;
  block.larger = after;
  block.bin = at;
  (before == kNoBlock ? bin.smallest : blocks[before].larger) = index;
  (after == kNoBlock ? bin.largest : blocks[after].smaller) = index;
  lane.occupied[at / 64] |= std::uint64_t{1} << (at % 64);
}

void BinnedFreeList::erase(std::span<Block> blocks, BlockIndex index) {
  Block& block = blocks[index];
  const BinIndex at = block.bin;
  if (at == kNoBin) throw InternalError("block is not in its free list");
  Lane& lane = lane_of(block.stream);
  Bin& bin = lane.bins[at];
  (block.smaller == kNoBlock ? bin.smallest : blocks[block.smaller].larger) = block.larger;
  (block.larger == kNoBlock ? bin.largest : blocks[block.larger].smaller) = block.smaller;
  block.bin = kNoBin;
  if (bin.smallest == kNoBlock) lane.occupied[at / 64] &= ~(std::uint64_t{1} << (at % 64));
}

BlockIndex BinnedFreeList::first_not_less(std::span<const Block> blocks, StreamId stream, Bytes size) const {
  const Lane* lane = find_lane(stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t bin = bin_of(size);
  for (BlockIndex at = lane->bins[bin].smallest; at != kNoBlock; at = blocks[at].larger) {
    if (blocks[at].size >= size) return at;
  }
  return lane->smallest_from(bin + 1);
}

BlockIndex BinnedFreeList::next(std::span<const Block> blocks, const FreeBlock& position) const {
  const Lane* lane = find_lane(position.stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t at = bin_of(position.size);
  const Bin& bin = lane->bins[at];
  const BlockIndex before =
      last_before(blocks, bin.smallest, bin.largest, position.size, position.address + 1);
  const BlockIndex after = before == kNoBlock ? bin.smallest : blocks[before].larger;
  return after != kNoBlock ? after : lane->smallest_from(at + 1);
}

BlockIndex BinnedFreeList::previous(std::span<const Block> blocks, const FreeBlock& position) const {
  const Lane* lane = find_lane(position.stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t at = bin_of(position.size);
  const Bin& bin = lane->bins[at];
  const BlockIndex before = last_before(blocks, bin.smallest, bin.largest, position.size, position.address);
  if (before != kNoBlock) return before;
  const std::size_t smaller = lane->occupied_before(at);
  return smaller == kBins ? kNoBlock : lane->bins[smaller].largest;
}

void BinnedFreeList::append_all(std::span<const Block> blocks, std::vector<BlockIndex>& out) const {
  for (const Lane& lane : lanes_) {
    for (std::size_t bin = lane.occupied_from(0); bin != kBins; bin = lane.occupied_from(bin + 1)) {
      for (BlockIndex at = lane.bins[bin].smallest; at != kNoBlock; at = blocks[at].larger) out.push_back(at);
    }
  }
}

void OrderedFreeList::insert(std::span<const Block> blocks, BlockIndex index) {
  blocks_.insert(free_entry(blocks[index], index));
}

void OrderedFreeList::erase(std::span<const Block> blocks, BlockIndex index) {
  if (blocks_.erase(free_entry(blocks[index], index)) == 0)
    throw InternalError("block is not in its free list");
}

BlockIndex OrderedFreeList::first_not_less(std::span<const Block>, StreamId stream, Bytes size) const {
  const auto found = blocks_.lower_bound({stream, size, 0, kNoBlock});
  return found == blocks_.end() || found->stream != stream ? kNoBlock : found->block;
}

BlockIndex OrderedFreeList::next(std::span<const Block>, const FreeBlock& position) const {
  const auto found = blocks_.upper_bound(position);
  return found == blocks_.end() || found->stream != position.stream ? kNoBlock : found->block;
}

BlockIndex OrderedFreeList::previous(std::span<const Block>, const FreeBlock& position) const {
  const auto found = blocks_.lower_bound(position);
  if (found == blocks_.begin() || std::prev(found)->stream != position.stream) return kNoBlock;
  return std::prev(found)->block;
}

void OrderedFreeList::append_all(std::span<const Block>, std::vector<BlockIndex>& out) const {
  for (const FreeBlock& block : blocks_) out.push_back(block.block);
}

FreeList::FreeList(FreeListKind kind) {
  if (kind == FreeListKind::ordered) list_.emplace<OrderedFreeList>();
}

BlockIndex FreeList::next(std::span<const Block> blocks, const FreeBlock& position) const {
  return std::visit([&](const auto& list) { return list.next(blocks, position); }, list_);
}

BlockIndex FreeList::previous(std::span<const Block> blocks, const FreeBlock& position) const {
  return std::visit([&](const auto& list) { return list.previous(blocks, position); }, list_);
}

std::vector<BlockIndex> FreeList::in_order(std::span<const Block> blocks) const {
  std::vector<BlockIndex> all;
  std::visit([&](const auto& list) { list.append_all(blocks, all); }, list_);
  return all;
}

}  // namespace vramlab
