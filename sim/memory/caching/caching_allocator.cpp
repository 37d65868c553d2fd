#include "sim/memory/caching/caching_allocator.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {
namespace {

BlockState state_of(const Block& block) {
  if (!block.mapped) return BlockState::unmapped;
  if (block.allocated) return BlockState::allocated;
  return block.is_pending() ? BlockState::pending_free : BlockState::inactive;
}

void check_backend(const AllocatorSettings& settings) {
  if (settings.backend != AllocatorBackend::native) {
    throw InputError("allocator settings: backend",
                     "the caching allocator is the native backend; cudaMallocAsync is another allocator, and "
                     "a program cannot change over at run time.");
  }
}

}  // namespace

CachingAllocator::CachingAllocator(SegmentSource& source, AllocatorOptions options)
    : source_(source), free_list_(options.free_list) {
  check_backend(options.settings);
  state_.settings = std::move(options.settings);
  state_.limit = options.limit;
  // R9.1: the product is truncated, so the limit can lie one byte below a round figure.
  const double fraction = state_.settings.per_process_memory_fraction;
  if (!state_.limit && fraction < 1.0) {
    state_.limit = static_cast<Bytes>(fraction * static_cast<double>(source_.device_total()));
  }
  // R8.4: captured once; unlimited reads as −1.
  state_.stats.max_split_size = static_cast<std::int64_t>(state_.settings.max_split_size);
  add_group({}, 1);
}

void CachingAllocator::set_settings(const AllocatorSettings& settings) {
  check_backend(settings);
  state_.settings = settings;
}

std::vector<SegmentView> CachingAllocator::segments() const {
  std::vector<SegmentView> views;
  for (const Segment& segment : state_.segments) {
    if (!segment.live) continue;
    SegmentView view{segment.base,
                     segment.size,
                     segment.stream,
                     is_large_pool(segment.pool),
                     segment.is_expandable(),
                     state_.groups[group_of(segment.pool)].id,
                     {}};
    for (BlockIndex i = segment.head; i != kNoBlock; i = state_.blocks[i].next) {
      const Block& block = state_.blocks[i];
      view.blocks.push_back({BlockId{i}, block.address, block.size, block.requested, state_of(block)});
    }
    views.push_back(std::move(view));
  }
  std::sort(views.begin(), views.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.base < b.base; });
  return views;
}

Bytes CachingAllocator::private_pools_idle() const {
  Bytes idle = 0;
  for (PoolIndex pool = 2; pool < state_.pools.size(); ++pool) {
    if (state_.groups[group_of(pool)].dropped) continue;
    for (const BlockIndex block : state_.pools[pool].free.in_order(state_.blocks))
      idle += state_.blocks[block].size;
  }
  return idle;
}

// Its one block is in no list yet.
BlockIndex CachingAllocator::add_segment(Segment segment, bool mapped) {
  auto place = static_cast<SegmentIndex>(state_.segments.size());
  if (state_.spare_segments.empty()) {
    state_.segments.emplace_back();
  } else {
    place = state_.spare_segments.back();
    state_.spare_segments.pop_back();
  }
  segment.live = true;
  segment.head = state_.blocks.add({.address = segment.base,
                                    .size = segment.size,
                                    .stream = segment.stream,
                                    .segment = place,
                                    .pool = segment.pool,
                                    .live = true,
                                    .mapped = mapped,
                                    .expandable = segment.is_expandable()});
  state_.segments[place] = segment;
  ++state_.groups[group_of(segment.pool)].segments;
  return segment.head;
}

void CachingAllocator::retire_segment(SegmentIndex segment) {
  const std::size_t group = group_of(state_.segments[segment].pool);
  state_.segments[segment].live = false;
  state_.spare_segments.push_back(segment);
  if (--state_.groups[group].segments > 0 || !state_.groups[group].dropped) return;
  --state_.orphaned_groups;
  state_.spare_groups.insert(group);
}

void CachingAllocator::refuse_block(BlockIndex index) {
  throw InternalError("block id " + std::to_string(index) + " names no block");
}

// Starting from memory that is held already, instead of from nothing.

void CachingAllocator::start_from(std::span<const SegmentView> segments) {
  if (state_.blocks.size() != state_.blocks.spare()) {
    throw InternalError("an allocator that holds memory is started from other memory");
  }
  for (const SegmentView& view : segments) {
    const std::size_t group = view.pool == kDefaultPool ? 0 : find_group(view.pool);
    add_initial_segment(view, static_cast<PoolIndex>(2 * group + (view.large ? 1 : 0)));
  }
  state_.stats.reset_sums();
  state_.stats.reset_peaks();
}

void CachingAllocator::add_initial_segment(const SegmentView& view, PoolIndex pool) {
  const Bytes page = view.large ? state_.settings.large_segment_size : kSmallSegment;
  BlockIndex index = add_segment({.base = view.base,
                                  .size = view.size,
                                  .page = view.expandable ? page : 0,
                                  .stream = view.stream,
                                  .pool = pool},
                                 /*mapped=*/true);
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
  if (group_of(pool) != 0) ++state_.groups[group_of(pool)].device_allocations;
  if (view.expandable) return;  // R8.2: the counters of segments do not see it
  state_.stats.segment.increase(class_of(pool), 1);
  if (is_oversize(view.size)) state_.stats.oversize_segments.increase(1);
}

void CachingAllocator::add_initial_block(BlockIndex index, const BlockView& view) {
  Block& block = state_.blocks[index];
  const StatClass c = class_of(block.pool);
  block.requested = view.requested;
  block.mapped = view.state != BlockState::unmapped;
  block.allocated = view.state == BlockState::allocated || view.state == BlockState::pending_free;
  if (!block.mapped) return add_unmapped(index);
  state_.stats.reserved_bytes.increase(c, static_cast<std::int64_t>(block.size));
  if (block.allocated) return count_allocation(c, block.size, block.requested);
  if (!block.expandable && block.is_split()) {  // R5.6
    state_.stats.inactive_split.increase(c, 1);
    state_.stats.inactive_split_bytes.increase(c, static_cast<std::int64_t>(block.size));
  }
  add_free(index);
}

}  // namespace vramlab
