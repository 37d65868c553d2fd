// Starting from memory that is held already, instead of from nothing.
#include "sim/core/error.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/rounding.hpp"

namespace vramlab {

void CachingAllocator::start_from(std::span<const SegmentView> segments) {
  if (state_.blocks.size() != state_.blocks.spare()) {
    throw InternalError("an allocator that holds memory is started from other memory");
  }
  for (const SegmentView& view : segments) {
    const std::size_t group = view.pool == kDefaultPool ? 0 : find_group(view.pool);
    add_initial_segment(view, static_cast<PoolIndex>(2 * group + (view.large ? 1 : 0)));
  }
  reset_accumulated_stats();
  reset_peak_stats();
}

void CachingAllocator::add_initial_segment(const SegmentView& view, PoolIndex pool) {
  const Bytes page = view.large ? state_.settings.large_segment_size : kSmallSegment;
  Block whole;
  whole.address = view.base;
  whole.size = view.size;
  whole.stream = view.stream;
  whole.pool = pool;
  whole.expandable = view.expandable;
  whole.live = true;
  BlockIndex index = state_.blocks.add(whole);
  state_.blocks[index].segment = new_segment({.base = view.base,
                                              .size = view.size,
                                              .page = view.expandable ? page : 0,
                                              .stream = view.stream,
                                              .head = index,
                                              .pool = pool,
                                              .live = true});
  for (std::size_t i = 0; i < view.blocks.size(); ++i) {
    const BlockView& block = view.blocks[i];
    const Bytes left = state_.blocks[index].size;
    const bool is_last = i + 1 == view.blocks.size();
    if (block.address != state_.blocks[index].address || (is_last ? block.size != left : block.size >= left))
      throw InternalError("the blocks of an initial segment do not cover it in order");
    const BlockIndex rest = is_last ? kNoBlock : state_.blocks.cut(index, block.size);
    add_initial_block(index, block);
    index = rest;
  }
  if (index != kNoBlock) throw InternalError("an initial segment has no blocks");
  count_initial_segment(view, pool);
}

void CachingAllocator::add_initial_block(BlockIndex index, const BlockView& view) {
  Block& block = state_.blocks[index];
  const StatClass c = class_of(block.pool);
  const auto size = static_cast<std::int64_t>(block.size);
  block.requested = view.requested;
  block.mapped = view.state != BlockState::unmapped;
  block.allocated = view.state == BlockState::allocated || view.state == BlockState::pending_free;
  if (!block.mapped) return add_unmapped(index);
  MemoryStats& stats = state_.stats;
  if (!block.allocated) {
    if (!block.expandable && block.is_split()) {  // R5.6
      stats.inactive_split.increase(c, 1);
      stats.inactive_split_bytes.increase(c, size);
    }
    return add_free(index);
  }
  stats.allocation.increase(c, 1);
  stats.allocated_bytes.increase(c, size);
  stats.active.increase(c, 1);
  stats.active_bytes.increase(c, size);
  stats.requested_bytes.increase(c, static_cast<std::int64_t>(block.requested));
  if (is_oversize(block.size)) stats.oversize_allocations.increase(1);
}

// R8.2: the counters of segments do not see expandable ones.
void CachingAllocator::count_initial_segment(const SegmentView& view, PoolIndex pool) {
  MemoryStats& stats = state_.stats;
  const StatClass c = class_of(pool);
  if (group_of(pool) != 0) ++state_.groups[group_of(pool)].device_allocations;
  if (!view.expandable) {
    stats.segment.increase(c, 1);
    if (is_oversize(view.size)) stats.oversize_segments.increase(1);
  }
  for (const BlockView& block : view.blocks) {
    if (block.state != BlockState::unmapped) {
      stats.reserved_bytes.increase(c, static_cast<std::int64_t>(block.size));
    }
  }
}

}  // namespace vramlab
