// R3.4 to R3.9: the two halves of a free, and frees that wait for other streams.
#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/caching/every_operation.hpp"

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
  } else {
    forget_idle_runs(merged.block);
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

// R3.7 to R3.9: blocks that several streams use, and frees that wait for them.

// R3.7: a set; the block's own stream does not count as another.
void CachingAllocator::record_stream(BlockId id, StreamId stream) {
  if (id == kNullBlock) return;
  Block& block = block_at(id);
  if (!block.allocated) throw InternalError("record_stream on a block that is not allocated");
  if (stream == block.stream) return;
  std::vector<StreamUse>& uses = state_.stream_uses[static_cast<BlockIndex>(id)];
  const bool known =
      std::any_of(uses.begin(), uses.end(), [stream](const StreamUse& use) { return use.stream == stream; });
  if (!known) uses.push_back({stream, capture_open()});
  block.has_stream_uses = true;
}

void CachingAllocator::record_events(BlockIndex block, const std::vector<StreamUse>& uses) {
  std::vector<StreamId> streams;
  for (const StreamUse& use : uses) streams.push_back(use.stream);
  state_.blocks[block].pending_events = static_cast<std::uint16_t>(streams.size());
  state_.events.record(block, std::move(streams));
}

void CachingAllocator::finish_events(BlockId id) {
  if (!block_at(id).is_pending()) throw InternalError("finish_events on a block without a deferred free");
  state_.events.finish(static_cast<BlockIndex>(id));
}

// R3.8: each stream's queue stops at its first unfinished event.
void CachingAllocator::process_events() {
  if (context_open()) return;
  if (!state_.parked.empty()) release_parked();
  if (!state_.events.any_finished()) return;
  for (const BlockIndex block : state_.events.take_finished()) {
    if (--state_.blocks[block].pending_events == 0) complete_free(block);
  }
}

// R3.9: uses recorded during a capture are forgotten; the others become events now.
void CachingAllocator::release_parked() {
  for (const BlockIndex index : std::exchange(state_.parked, {})) {
    auto uses = state_.stream_uses.extract(index);
    std::erase_if(uses.mapped(), [](const StreamUse& use) { return use.in_capture; });
    state_.blocks[index].has_stream_uses = false;
    if (uses.mapped().empty()) {
      complete_free(index);
    } else {
      record_events(index, uses.mapped());
    }
  }
}

// R3.9: PyTorch proves by the graph that nothing still reads the block; here it is taken for granted when the
// same stream allocates again. Approximate: no recording holds such a case.
void CachingAllocator::release_parked_on(StreamId stream) {
  std::vector<BlockIndex> kept;
  for (const BlockIndex index : std::exchange(state_.parked, {})) {
    if (state_.blocks[index].stream != stream) {
      kept.push_back(index);
      continue;
    }
    state_.stream_uses.erase(index);
    state_.blocks[index].has_stream_uses = false;
    complete_free(index);
  }
  state_.parked = std::move(kept);
}

// R4.8 a
void CachingAllocator::synchronize_and_complete() {
  ++state_.stats.num_sync_all_streams;
  if (!context_open()) release_parked();
  finish_events();
  process_events();
}

}  // namespace vramlab
