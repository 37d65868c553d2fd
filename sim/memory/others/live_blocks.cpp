#include "sim/memory/others/live_blocks.hpp"

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
