#include "sim/memory/caching_allocator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/core/error.hpp"

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

}  // namespace vramlab
