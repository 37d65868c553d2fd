// R3.4 and R3.5: the two halves of a free.
#include <string>

#include "sim/core/error.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/every_operation.hpp"

namespace vramlab {

// R3.5
inline void CachingAllocator::put_back(BlockIndex index) {
  const Block& freed = state_.blocks[index];
  const StatClass c = class_of(freed.pool);
  const auto size = static_cast<std::int64_t>(freed.size);
  const auto requested = static_cast<std::int64_t>(freed.requested);
  tell(AllocatorEvent::Action::free_completed, freed.address, freed.requested, freed.stream);

  const Merged merged = merge_with_neighbours(index, true);
  add_free(merged.block);

  MemoryStats& stats = state_.stats;
  const Block& block = state_.blocks[merged.block];
  if (!block.expandable) {
    // One net change: the totals of increases and decreases depend on it.
    const bool split = block.is_split();
    stats.inactive_split.change(c, (split ? 1 : 0) - merged.absorbed);
    stats.inactive_split_bytes.change(c, (split ? static_cast<std::int64_t>(block.size) : 0) -
                                             static_cast<std::int64_t>(merged.absorbed_bytes));
  }
  stats.active.decrease(c, 1);
  stats.active_bytes.decrease(c, size);
  stats.requested_bytes.decrease(c, requested);
}

void CachingAllocator::complete_free(BlockIndex index) { put_back(index); }

void CachingAllocator::refuse_second_free(BlockId id) {
  throw InternalError("block " + std::to_string(static_cast<BlockIndex>(id)) + " is freed twice");
}

// R3.4: the first half happens at once, the second may have to wait for other streams.
void CachingAllocator::free(BlockId id) {
  if (id == kNullBlock) return;
  Block& block = block_at(id);
  if (!block.allocated) refuse_second_free(id);

  const auto index = static_cast<BlockIndex>(id);
  const StatClass c = class_of(block.pool);
  block.allocated = false;
  state_.stats.allocation.decrease(c, 1);
  state_.stats.allocated_bytes.decrease(c, static_cast<std::int64_t>(block.size));
  tell(AllocatorEvent::Action::free_requested, block.address, block.requested, block.stream);
  if (is_oversize(block.size)) state_.stats.oversize_allocations.decrease(1);  // R8.3: M of this moment

  if (!block.has_stream_uses) {
    put_back(index);
  } else if (context_open()) {
    state_.parked.push_back(index);  // R3.9
  } else {
    const auto uses = state_.stream_uses.extract(index);
    block.has_stream_uses = false;
    record_events(index, uses.mapped());
  }
}

}  // namespace vramlab
