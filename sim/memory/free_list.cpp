#include "sim/memory/free_list.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

#include "sim/core/error.hpp"

namespace vramlab {

// Small sizes have a bin each; above, every power of two has 32. Never decreases with the size, so the order
// of bins is the order of sizes; what is too large for the table shares the last bin.
std::size_t BinnedFreeList::bin_of(Bytes size) {
  constexpr Bytes kPerDoubling = Bytes{1} << kLog2BinsPerDoubling;
  const Bytes units = size / 512;
  if (units < kPerDoubling) return static_cast<std::size_t>(units);
  const int doublings = static_cast<int>(std::bit_width(units)) - kLog2BinsPerDoubling;  // at least 1
  const Bytes bin = kPerDoubling * static_cast<Bytes>(doublings - 1) + (units >> (doublings - 1));
  return static_cast<std::size_t>(std::min<Bytes>(bin, kBins - 1));
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
  return found == kBins ? kNoBlock : smallest[found];
}

bool BinnedFreeList::is_before(BlockIndex block, Bytes size, Address address) const {
  const Node& node = nodes_[block];
  return node.size != size ? node.size < size : node.address < address;
}

// The block of the bin behind which (size, address) belongs; kNoBlock if it belongs at the head. Blocks that
// come in ascending order are met at the tail, all others by walking from the head.
BlockIndex BinnedFreeList::last_before(const Lane& lane, std::size_t bin, Bytes size, Address address) const {
  const BlockIndex largest = lane.largest[bin];
  if (largest == kNoBlock || is_before(largest, size, address)) return largest;
  BlockIndex before = kNoBlock;
  for (BlockIndex at = lane.smallest[bin]; is_before(at, size, address); at = nodes_[at].next) before = at;
  return before;
}

void BinnedFreeList::insert(const FreeBlock& block) {
  if (block.block >= nodes_.size()) nodes_.resize(std::size_t{block.block} + 1);
  Lane& lane = lane_of(block.stream);
  const std::size_t bin = bin_of(block.size);
  const BlockIndex before = last_before(lane, bin, block.size, block.address);
  const BlockIndex after = before == kNoBlock ? lane.smallest[bin] : nodes_[before].next;

  Node& node = nodes_[block.block];
  node.size = block.size;
  node.address = block.address;
  node.previous = before;
  node.next = after;
  node.bin = static_cast<std::uint32_t>(bin);
  (before == kNoBlock ? lane.smallest[bin] : nodes_[before].next) = block.block;
  (after == kNoBlock ? lane.largest[bin] : nodes_[after].previous) = block.block;
  lane.occupied[bin / 64] |= std::uint64_t{1} << (bin % 64);
}

void BinnedFreeList::erase(const FreeBlock& block) {
  if (find_lane(block.stream) == nullptr || block.block >= nodes_.size() || nodes_[block.block].bin == kNoBin)
    throw InternalError("block is not in its free list");
  Lane& lane = lane_of(block.stream);
  Node& node = nodes_[block.block];
  const std::size_t bin = node.bin;
  (node.previous == kNoBlock ? lane.smallest[bin] : nodes_[node.previous].next) = node.next;
  (node.next == kNoBlock ? lane.largest[bin] : nodes_[node.next].previous) = node.previous;
  node.bin = kNoBin;
  if (lane.smallest[bin] == kNoBlock) lane.occupied[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
}

BlockIndex BinnedFreeList::first_not_less(StreamId stream, Bytes size) const {
  const Lane* lane = find_lane(stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t bin = bin_of(size);
  for (BlockIndex at = lane->smallest[bin]; at != kNoBlock; at = nodes_[at].next) {
    if (nodes_[at].size >= size) return at;
  }
  return lane->smallest_from(bin + 1);
}

BlockIndex BinnedFreeList::next(const FreeBlock& position) const {
  const Lane* lane = find_lane(position.stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t bin = bin_of(position.size);
  const BlockIndex before = last_before(*lane, bin, position.size, position.address + 1);
  const BlockIndex after = before == kNoBlock ? lane->smallest[bin] : nodes_[before].next;
  return after != kNoBlock ? after : lane->smallest_from(bin + 1);
}

BlockIndex BinnedFreeList::previous(const FreeBlock& position) const {
  const Lane* lane = find_lane(position.stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t bin = bin_of(position.size);
  const BlockIndex before = last_before(*lane, bin, position.size, position.address);
  if (before != kNoBlock) return before;
  const std::size_t smaller = lane->occupied_before(bin);
  return smaller == kBins ? kNoBlock : lane->largest[smaller];
}

void BinnedFreeList::append_all(std::vector<BlockIndex>& out) const {
  for (const Lane& lane : lanes_) {
    for (BlockIndex at = lane.smallest_from(0); at != kNoBlock;) {
      out.push_back(at);
      at =
          nodes_[at].next != kNoBlock ? nodes_[at].next : lane.smallest_from(std::size_t{nodes_[at].bin} + 1);
    }
  }
}

void OrderedFreeList::insert(const FreeBlock& block) { blocks_.insert(block); }

void OrderedFreeList::erase(const FreeBlock& block) {
  if (blocks_.erase(block) == 0) throw InternalError("block is not in its free list");
}

BlockIndex OrderedFreeList::first_not_less(StreamId stream, Bytes size) const {
  const auto found = blocks_.lower_bound({stream, size, 0, kNoBlock});
  return found == blocks_.end() || found->stream != stream ? kNoBlock : found->block;
}

BlockIndex OrderedFreeList::next(const FreeBlock& block) const {
  const auto found = blocks_.upper_bound(block);
  return found == blocks_.end() || found->stream != block.stream ? kNoBlock : found->block;
}

BlockIndex OrderedFreeList::previous(const FreeBlock& position) const {
  const auto found = blocks_.lower_bound(position);
  if (found == blocks_.begin() || std::prev(found)->stream != position.stream) return kNoBlock;
  return std::prev(found)->block;
}

void OrderedFreeList::append_all(std::vector<BlockIndex>& out) const {
  for (const FreeBlock& block : blocks_) out.push_back(block.block);
}

FreeList::FreeList(FreeListKind kind) {
  if (kind == FreeListKind::ordered) list_.emplace<OrderedFreeList>();
}

void FreeList::insert(const FreeBlock& block) {
  std::visit([&](auto& list) { list.insert(block); }, list_);
}

void FreeList::erase(const FreeBlock& block) {
  std::visit([&](auto& list) { list.erase(block); }, list_);
}

BlockIndex FreeList::first_not_less(StreamId stream, Bytes size) const {
  return std::visit([&](const auto& list) { return list.first_not_less(stream, size); }, list_);
}

BlockIndex FreeList::next(const FreeBlock& block) const {
  return std::visit([&](const auto& list) { return list.next(block); }, list_);
}

BlockIndex FreeList::previous(const FreeBlock& position) const {
  return std::visit([&](const auto& list) { return list.previous(position); }, list_);
}

std::vector<BlockIndex> FreeList::in_order() const {
  std::vector<BlockIndex> all;
  std::visit([&](const auto& list) { list.append_all(all); }, list_);
  return all;
}

}  // namespace vramlab
