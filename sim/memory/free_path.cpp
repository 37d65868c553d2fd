// R3.4 and R3.5: the two halves of a free.
#include <string>

#include "sim/core/error.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/every_operation.hpp"

namespace vramlab {

// R3.5
void CachingAllocator::complete_free(BlockIndex index) {
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

void CachingAllocator::refuse_free(BlockId id) const {
  (void)block_at(id);  // refuses ids of no block
  throw InternalError("block " + std::to_string(static_cast<BlockIndex>(id)) + " is freed twice");
}

// R3.4: the first half happens at once, the second may have to wait for other streams.
void CachingAllocator::free(BlockId id) {
  if (id == kNullBlock) return;
  const auto index = static_cast<BlockIndex>(id);
  if (index >= state_.blocks.size() || !state_.blocks[index].allocated) [[unlikely]]
    refuse_free(id);
  Block& block = state_.blocks[index];
  const StatClass c = class_of(block.pool);
  block.allocated = false;
  state_.stats.allocation.decrease(c, 1);
  state_.stats.allocated_bytes.decrease(c, static_cast<std::int64_t>(block.size));
  tell(AllocatorEvent::Action::free_requested, block.address, block.requested, block.stream);
  if (is_oversize(block.size)) [[unlikely]]
    state_.stats.oversize_allocations.decrease(1);  // R8.3: M of this moment

  if (block.has_stream_uses) [[unlikely]]
    return defer_free(index);
  complete_free(index);
}

void CachingAllocator::defer_free(BlockIndex index) {
  if (context_open()) {
    state_.parked.push_back(index);  // R3.9
  } else {
    const auto uses = state_.stream_uses.extract(index);
    state_.blocks[index].has_stream_uses = false;
    record_events(index, uses.mapped());
  }
}

}  // namespace vramlab
