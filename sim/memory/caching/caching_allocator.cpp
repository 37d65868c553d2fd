#include "sim/memory/caching/caching_allocator.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {
namespace {

constexpr StatArray MemoryStats::*kArrays[] = {
    &MemoryStats::allocation,      &MemoryStats::segment,
    &MemoryStats::active,          &MemoryStats::inactive_split,
    &MemoryStats::allocated_bytes, &MemoryStats::reserved_bytes,
    &MemoryStats::active_bytes,    &MemoryStats::inactive_split_bytes,
    &MemoryStats::requested_bytes};

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

void CachingAllocator::set_settings(std::string_view conf) {
  set_settings(parse_allocator_settings(conf, state_.settings));
}

// R8.5
void CachingAllocator::reset_peak_stats() {
  for (const auto array : kArrays) (state_.stats.*array).reset_peak();
  state_.stats.oversize_allocations.reset_peak();
  state_.stats.oversize_segments.reset_peak();
}

// R8.5
void CachingAllocator::reset_accumulated_stats() {
  MemoryStats& stats = state_.stats;
  for (const auto array : kArrays) (stats.*array).reset_sums();
  for (Stat* stat : {&stats.oversize_allocations, &stats.oversize_segments})
    stat->allocated = stat->freed = 0;
  stats.num_alloc_retries = 0;
  stats.num_ooms = 0;
  stats.num_sync_all_streams = 0;
  stats.num_device_alloc = 0;
  stats.num_device_free = 0;
}

Address CachingAllocator::address_of(BlockId block) const {
  return block == kNullBlock ? 0 : block_at(block).address;
}

Bytes CachingAllocator::size_of(BlockId block) const {
  return block == kNullBlock ? 0 : block_at(block).size;
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

SegmentIndex CachingAllocator::new_segment(const Segment& segment) {
  if (state_.spare_segments.empty()) {
    state_.segments.push_back(segment);
    return static_cast<SegmentIndex>(state_.segments.size() - 1);
  }
  const SegmentIndex index = state_.spare_segments.back();
  state_.spare_segments.pop_back();
  state_.segments[index] = segment;
  return index;
}

void CachingAllocator::retire_segment(SegmentIndex segment) {
  state_.segments[segment].live = false;
  state_.spare_segments.push_back(segment);
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
