#include "sim/memory/free_list.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <limits>

#include "sim/core/error.hpp"

namespace vramlab {

// Sizes up to 8 KiB have a bin each; above, every power of two has 16. Never decreases with the size, so
// the order of bins is the order of sizes; what is too large for the table shares the last bin.
std::size_t BinnedFreeList::bin_of(Bytes size) {
  const Bytes units = size / 512;
  if (units < 16) return static_cast<std::size_t>(units);
  const int log2 = static_cast<int>(std::bit_width(units)) - 1;
  const Bytes bin = 16 * static_cast<Bytes>(log2 - 3) + ((units >> (log2 - 4)) & 15);
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

void BinnedFreeList::insert(const FreeBlock& block) {
  Lane& lane = lane_of(block.stream);
  const std::size_t number = bin_of(block.size);
  Bin& bin = lane.bins[number];
  const Entry entry{block.size, block.address, block.block};
  if (bin.empty()) {
    lane.occupied[number / 64] |= std::uint64_t{1} << (number % 64);
    bin.push_back(entry);
  } else if (bin.back() > entry) {
    bin.push_back(entry);
  } else {
    bin.insert(std::lower_bound(bin.begin(), bin.end(), entry, std::greater<>{}), entry);
  }
}

void BinnedFreeList::erase(const FreeBlock& block) {
  Lane& lane = lane_of(block.stream);
  const std::size_t number = bin_of(block.size);
  Bin& bin = lane.bins[number];
  if (!bin.empty() && bin.back().block == block.block) {
    bin.pop_back();
  } else {
    const Entry entry{block.size, block.address, block.block};
    const auto found = std::lower_bound(bin.begin(), bin.end(), entry, std::greater<>{});
    if (found == bin.end() || found->block != block.block)
      throw InternalError("block is not in its free list");
    bin.erase(found);
  }
  if (bin.empty()) lane.occupied[number / 64] &= ~(std::uint64_t{1} << (number % 64));
}

BlockIndex BinnedFreeList::first_not_less(StreamId stream, Bytes size) const {
  const Lane* lane = find_lane(stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t number = bin_of(size);
  const Bin& bin = lane->bins[number];
  if (!bin.empty() && bin.front().size >= size) {
    const auto below =
        std::partition_point(bin.begin(), bin.end(), [size](const Entry& e) { return e.size >= size; });
    return std::prev(below)->block;
  }
  const std::size_t larger = lane->occupied_from(number + 1);
  return larger == kBins ? kNoBlock : lane->bins[larger].back().block;
}

BlockIndex BinnedFreeList::next(const FreeBlock& block) const {
  const Lane* lane = find_lane(block.stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t number = bin_of(block.size);
  const Bin& bin = lane->bins[number];
  const Entry entry{block.size, block.address, block.block};
  const auto found = std::lower_bound(bin.begin(), bin.end(), entry, std::greater<>{});
  if (found != bin.begin()) return std::prev(found)->block;
  const std::size_t larger = lane->occupied_from(number + 1);
  return larger == kBins ? kNoBlock : lane->bins[larger].back().block;
}

BlockIndex BinnedFreeList::previous(const FreeBlock& position) const {
  const Lane* lane = find_lane(position.stream);
  if (lane == nullptr) return kNoBlock;
  const std::size_t number = bin_of(position.size);
  const Bin& bin = lane->bins[number];
  const Entry entry{position.size, position.address, kNoBlock};
  const auto below =
      std::partition_point(bin.begin(), bin.end(), [&](const Entry& e) { return !(entry > e); });
  if (below != bin.end()) return below->block;
  const std::size_t smaller = lane->occupied_before(number);
  return smaller == kBins ? kNoBlock : lane->bins[smaller].front().block;
}

void BinnedFreeList::append_all(std::vector<BlockIndex>& out) const {
  for (const Lane& lane : lanes_) {
    for (std::size_t bin = lane.occupied_from(0); bin < kBins; bin = lane.occupied_from(bin + 1)) {
      for (auto entry = lane.bins[bin].rbegin(); entry != lane.bins[bin].rend(); ++entry) {
        out.push_back(entry->block);
      }
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
