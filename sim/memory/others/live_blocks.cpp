#include "sim/memory/others/live_blocks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"

namespace vramlab {

void PlainAllocator::count_allocation(Bytes size, Bytes requested) {
  stats_.allocation.increase_whole(1);
  stats_.active.increase_whole(1);
  stats_.allocated_bytes.increase_whole(size);
  stats_.active_bytes.increase_whole(size);
  stats_.requested_bytes.increase_whole(requested);
}

void PlainAllocator::count_free(Bytes size, Bytes requested) {
  stats_.allocation.decrease_whole(1);
  stats_.active.decrease_whole(1);
  stats_.allocated_bytes.decrease_whole(size);
  stats_.active_bytes.decrease_whole(size);
  stats_.requested_bytes.decrease_whole(requested);
}

OutOfMemory PlainAllocator::out_of_memory(Bytes size) const {
  OutOfMemory oom;
  oom.requested = oom.rounded = oom.segment = size;
  oom.device_total = source_.device_total();
  oom.device_free = source_.device_free();
  oom.allocated = total_of(stats_.allocated_bytes);
  oom.reserved = total_of(stats_.reserved_bytes);
  return oom;
}

std::optional<Address> AddressHeap::take(Bytes size, Address from) {
  for (const auto& [start, length] : holes_) {
    if (length < size) continue;
    const Address place = std::max(start, from);
    if (take_at(place, size)) return place;
  }
  return std::nullopt;
}

bool AddressHeap::take_at(Address address, Bytes size) {
  auto hole = holes_.upper_bound(address);
  if (hole == holes_.begin()) return false;
  hole = std::prev(hole);
  const auto [start, length] = *hole;
  const Bytes before = address - start;
  if (before > length || size > length - before) return false;
  holes_.erase(hole);
  if (before > 0) holes_.emplace(start, before);
  if (const Bytes after = length - before - size; after > 0) holes_.emplace(address + size, after);
  return true;
}

void AddressHeap::give(Address address, Bytes size) {
  auto after = holes_.lower_bound(address);
  const auto before = after == holes_.begin() ? holes_.end() : std::prev(after);
  const bool overlaps = (after != holes_.end() && after->first - address < size) ||
                        (before != holes_.end() && before->first + before->second > address);
  if (overlaps || address < base_ || address - base_ > size_ || size > size_ - (address - base_)) {
    throw InternalError("a range of addresses is given back that was not taken");
  }
  if (after != holes_.end() && address + size == after->first) {
    size += after->second;
    holes_.erase(after);
  }
  if (before != holes_.end() && before->first + before->second == address) {
    before->second += size;
  } else {
    holes_.emplace(address, size);
  }
}

BlockId LiveBlocks::add(const LiveBlock& block) {
  if (unused_.empty()) {
    blocks_.emplace_back(block);
    return BlockId{static_cast<BlockIndex>(blocks_.size() - 1)};
  }
  const BlockIndex index = unused_.back();
  unused_.pop_back();
  blocks_[index] = block;
  return BlockId{index};
}

LiveBlock LiveBlocks::remove(BlockId block) {
  const auto index = static_cast<BlockIndex>(block);
  if (index >= blocks_.size() || !blocks_[index]) throw InternalError("a block is freed that is not live");
  unused_.push_back(index);
  return *std::exchange(blocks_[index], std::nullopt);
}

}  // namespace vramlab
