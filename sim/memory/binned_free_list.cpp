#include "sim/memory/binned_free_list.hpp"

#include <algorithm>
#include <utility>

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

}  // namespace vramlab
