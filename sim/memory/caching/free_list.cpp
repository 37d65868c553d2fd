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

BinnedFreeList::Lane* BinnedFreeList::find_later_lane(StreamId stream) {
  for (Lane& lane : lanes_) {
    ++inspected_;
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

// Made when a bin is found to be long, and kept up to date until it is empty.
const BinnedFreeList::Index& BinnedFreeList::index_of(std::span<const Block> blocks, Lane& lane,
                                                      BinIndex bin) {
  Index& index = lane.indices[bin];
  if (lane.is_indexed(bin)) return index;
  for (BlockIndex at = lane.bins[bin].smallest; at != kNoBlock; at = blocks[at].larger, ++inspected_)
    index.emplace_hint(index.end(), std::pair{blocks[at].size, blocks[at].address}, at);
  lane.indexed[bin / 64] |= std::uint64_t{1} << (bin % 64);
  return index;
}

BlockIndex BinnedFreeList::first_of_long_bin(std::span<const Block> blocks, Lane& lane, BinIndex bin,
                                             Bytes size) {
  const Index& index = index_of(blocks, lane, bin);
  const auto found = index.lower_bound({size, 0});
  return found != index.end() ? found->second : lane.smallest_from(bin + std::size_t{1});
}

// One is before it: the head of the bin, at least.
BlockIndex BinnedFreeList::last_before_in_long_bin(std::span<const Block> blocks, Lane& lane, BinIndex bin,
                                                   Bytes size, Address address) {
  return std::prev(index_of(blocks, lane, bin).lower_bound({size, address}))->second;
}

void BinnedFreeList::add_to_index(Lane& lane, BinIndex bin, const Block& block, BlockIndex index) {
  lane.indices[bin].emplace(std::pair{block.size, block.address}, index);
}

void BinnedFreeList::remove_from_index(Lane& lane, BinIndex bin, const Block& block) {
  Index& index = lane.indices[bin];
  index.erase({block.size, block.address});
  if (!index.empty()) return;
  lane.indices.erase(bin);
  lane.indexed[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
}

BlockIndex BinnedFreeList::next(std::span<const Block> blocks, const FreeBlock& position) {
  Lane* const lane = find_lane(position.stream);
  if (lane == nullptr) return other_streams_.next(blocks, position);
  const BinIndex at = bin_of(position.size);
  const BlockIndex before = last_before(blocks, *lane, at, position.size, position.address + 1);
  const BlockIndex after = before == kNoBlock ? lane->bins[at].smallest : blocks[before].larger;
  return after != kNoBlock ? after : lane->smallest_from(at + std::size_t{1});
}

BlockIndex BinnedFreeList::previous(std::span<const Block> blocks, const FreeBlock& position) {
  Lane* const lane = find_lane(position.stream);
  if (lane == nullptr) return other_streams_.previous(blocks, position);
  const BinIndex at = bin_of(position.size);
  const BlockIndex before = last_before(blocks, *lane, at, position.size, position.address);
  if (before != kNoBlock) return before;
  const std::size_t smaller = lane->occupied_before(at);
  return smaller == kBins ? kNoBlock : lane->bins[smaller].largest;
}

void BinnedFreeList::append_all(std::span<const Block> blocks, std::vector<BlockIndex>& out) const {
  StreamId from = 0;
  for (const Lane& lane : lanes_) {
    other_streams_.append_all(out, from, lane.stream);
    from = lane.stream;
    for (std::size_t bin = lane.occupied_from(0); bin != kBins; bin = lane.occupied_from(bin + 1)) {
      for (BlockIndex at = lane.bins[bin].smallest; at != kNoBlock; at = blocks[at].larger) out.push_back(at);
    }
  }
  other_streams_.append_all(out, from);
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

void OrderedFreeList::append_all(std::vector<BlockIndex>& out, StreamId from,
                                 std::optional<StreamId> to) const {
  for (auto at = blocks_.lower_bound({from, 0, 0, kNoBlock});
       at != blocks_.end() && (!to || at->stream < *to); ++at) {
    out.push_back(at->block);
  }
}

void FreeList::refuse() { throw InternalError("block is not in its free list"); }

BlockIndex FreeList::next(std::span<const Block> blocks, const FreeBlock& position) {
  return kind_ == FreeListKind::binned ? binned_.next(blocks, position) : ordered_.next(blocks, position);
}

BlockIndex FreeList::previous(std::span<const Block> blocks, const FreeBlock& position) {
  return kind_ == FreeListKind::binned ? binned_.previous(blocks, position)
                                       : ordered_.previous(blocks, position);
}

std::vector<BlockIndex> FreeList::in_order(std::span<const Block> blocks) const {
  std::vector<BlockIndex> all;
  binned_.append_all(blocks, all);
  ordered_.append_all(all);
  return all;
}

}  // namespace vramlab
