#include "sim/memory/caching/free_list.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"

namespace vramlab {

std::size_t BinnedFreeList::Lane::occupied_before(std::size_t bin) const {
  std::size_t word = bin / 64;
  std::uint64_t bits = bin % 64 == 0 ? 0 : occupied[word] & (~std::uint64_t{0} >> (64 - bin % 64));
  while (bits == 0) {
    if (word == 0) return kBins;
    bits = occupied[--word];
  }
  return word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(bits));
}

const BinnedFreeList::Lane* BinnedFreeList::find_later_lane(StreamId stream) const {
  for (const Lane& lane : lanes_) {
    if (lane.stream == stream) return &lane;
  }
  return nullptr;
}

BinnedFreeList::Lane& BinnedFreeList::add_lane(StreamId stream) {
  const auto after =
      std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return l.stream > stream; });
  Lane lane;
  lane.stream = stream;
  return *lanes_.insert(after, std::move(lane));
}

BlockIndex BinnedFreeList::next(std::span<const Block> blocks, const FreeBlock& position) const {
  const Lane* lane = find_lane(position.stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t at = bin_of(position.size);
  const Bin& bin = lane->bins[at];
  const BlockIndex before = last_before(blocks, bin, position.size, position.address + 1);
  const BlockIndex after = before == kNoBlock ? bin.smallest : blocks[before].larger;
  return after != kNoBlock ? after : lane->smallest_from(at + 1);
}

BlockIndex BinnedFreeList::previous(std::span<const Block> blocks, const FreeBlock& position) const {
  const Lane* lane = find_lane(position.stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t at = bin_of(position.size);
  const Bin& bin = lane->bins[at];
  const BlockIndex before = last_before(blocks, bin, position.size, position.address);
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
  if (blocks_.erase(free_entry(blocks[index], index)) == 0) {
    throw InternalError("a cached block has changed its size or place");
  }
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

void FreeList::refuse() { throw InternalError("block is not in its free list"); }

BlockIndex FreeList::next(std::span<const Block> blocks, const FreeBlock& position) const {
  return kind_ == FreeListKind::binned ? binned_.next(blocks, position) : ordered_.next(blocks, position);
}

BlockIndex FreeList::previous(std::span<const Block> blocks, const FreeBlock& position) const {
  return kind_ == FreeListKind::binned ? binned_.previous(blocks, position)
                                       : ordered_.previous(blocks, position);
}

std::vector<BlockIndex> FreeList::in_order(std::span<const Block> blocks) const {
  std::vector<BlockIndex> all;
  binned_.append_all(blocks, all);
  ordered_.append_all(blocks, all);
  return all;
}

}  // namespace vramlab
