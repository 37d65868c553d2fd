#include "sim/memory/others/fixed_pool.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {

AllocationResult FixedPoolAllocator::allocate(Bytes size, StreamId stream) {
  if (size == 0) return Allocation{kNullBlock, 0};
  std::vector<BlockIndex>& idle = idle_[size];
  if (!idle.empty()) {
    const BlockIndex last = idle.back();
    idle.pop_back();
    return hand_out(last);
  }
  const AllocationResult made = device_.allocate(size, stream);
  note_device();
  if (!made) {
    ++stats_.num_ooms;
    OutOfMemory oom = out_of_memory(size);
    oom.idle.other_size = this->idle();
    return oom;
  }
  auto index = static_cast<BlockIndex>(chunks_.size());
  if (unused_.empty()) {
    chunks_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
  }
  chunks_[index] = {.place = *made, .size = size, .in_use = false};
  return hand_out(index);
}

Allocation FixedPoolAllocator::hand_out(BlockIndex index) {
  Chunk& chunk = chunks_[index];
  chunk.in_use = true;
  count_allocation(chunk.size, chunk.size);
  return {BlockId{index}, chunk.place.address};
}

void FixedPoolAllocator::free(BlockId block) {
  if (block == kNullBlock) return;
  const auto index = static_cast<BlockIndex>(block);
  if (index >= chunks_.size() || !chunks_[index].in_use) {
    throw InternalError("a chunk is freed that is not in use");
  }
  chunks_[index].in_use = false;
  count_free(chunks_[index].size, chunks_[index].size);
  idle_[chunks_[index].size].push_back(index);
}

void FixedPoolAllocator::empty_cache() {
  for (const auto& [size, idle] : idle_) {
    for (const BlockIndex index : idle) {
      device_.free(chunks_[index].place.block);
      unused_.push_back(index);
    }
  }
  idle_.clear();
  note_device();
}

// The device's pages and calls are the pool's.
void FixedPoolAllocator::note_device() {
  const MemoryStats& device = device_.stats();
  stats_.segment.set_whole(total_of(device.segment));
  stats_.reserved_bytes.set_whole(total_of(device.reserved_bytes));
  stats_.num_device_alloc = device.num_device_alloc;
  stats_.num_device_free = device.num_device_free;
}

Bytes FixedPoolAllocator::idle() const {
  Bytes bytes = 0;
  for (const auto& [size, chunks] : idle_) bytes += size * chunks.size();
  return bytes;
}

}  // namespace vramlab
