// R4.7, R4.8, R6.1 to R6.4 and R7.4: giving cached memory back to the device.
#include <algorithm>
#include <cstdint>

#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {

// R4.7: with a max_split_size, the oversize blocks of the request's pool and stream, the largest first. What
// was released stays released even when it is not enough.
bool CachingAllocator::release_oversize(const Request& request) {
  if (state_.settings.max_split_size == kUnlimited) return false;
  const Bytes wanted = std::max(request.rounded, state_.settings.max_split_size);
  FreeList& free = state_.pools[request.pool].free;
  FreeBlock position{request.stream, wanted, 0, kNoBlock};
  const BlockIndex fitting = free.first_not_less(state_.blocks, request.stream, wanted);
  if (fitting != kNoBlock && !state_.blocks[fitting].expandable) {
    release_plain(fitting);
    return true;
  }
  if (fitting != kNoBlock) position = free_entry(state_.blocks[fitting], fitting);

  Bytes released = 0;
  while (released < wanted) {
    const BlockIndex index = free.previous(state_.blocks, position);
    if (index == kNoBlock || !is_oversize(state_.blocks[index].size)) break;
    const Block block = state_.blocks[index];
    position = free_entry(block, index);
    if (block.expandable) continue;
    released += block.size;
    release_plain(index);
  }
  return released >= wanted;
}

// R4.8: everything that is not in use, whether or not anything can be freed.
void CachingAllocator::release_everything() {
  synchronize_and_complete();
  release_pool(1);
  release_pool(0);
  release_freeable_groups();
}

// R7.4
void CachingAllocator::empty_cache() {
  if (context_open()) {
    release_freeable_groups();
  } else {
    release_everything();
  }
}

// R7.4
void CachingAllocator::empty_cache(PoolId pool) {
  const std::size_t group = find_group(pool);
  if (state_.groups[group].uses > 0) return;
  synchronize_and_complete();
  release_group(group);
}

// R4.8 c
void CachingAllocator::release_freeable_groups() {
  std::vector<std::size_t> freeable;
  for (const auto& [id, group] :
       state_.private_groups) {  // the oldest first; PyTorch's order is a hash table's
    if (state_.groups[group].uses == 0) freeable.push_back(group);
  }
  for (const std::size_t group : freeable) release_group(group);
}

// R4.8 c, R7.9: small blocks first, and the record goes when the count says that nothing is left.
void CachingAllocator::release_group(std::size_t group) {
  release_pool(static_cast<PoolIndex>(2 * group));
  release_pool(static_cast<PoolIndex>(2 * group + 1));
  if (state_.groups[group].device_allocations == 0) drop_group(group);
}

// R4.8 b: plain segments as they are met, expandable blocks after them in the same order.
void CachingAllocator::release_pool(PoolIndex pool) {
  std::vector<BlockIndex> expandable;
  for (const BlockIndex index : state_.pools[pool].free.in_order(state_.blocks)) {
    const Block& block = state_.blocks[index];
    if (block.expandable) {
      expandable.push_back(index);
    } else if (!block.is_split()) {
      release_plain(index);
    }
  }
  for (const BlockIndex index : expandable) unmap_block(index);
}

// cudaFree of a cached block. R4.7's trap: nobody checked that it is a whole segment. For a piece of one, the
// driver refuses, or takes away memory that the rest of the segment still uses.
void CachingAllocator::release_plain(BlockIndex index) {
  const Block block = state_.blocks[index];
  MemoryStats& stats = state_.stats;
  tell(AllocatorEvent::Action::segment_free, block.address, block.size, block.stream);
  ++stats.num_device_free;
  if (block.is_split()) {
    throw AllocatorFault(block.previous != kNoBlock
                             ? "CUDA error: invalid argument (cudaFree of a piece of a segment)"
                             : "cudaFree of the first piece of a segment whose rest is still in use");
  }
  source_.release(block.address);

  const StatClass c = class_of(block.pool);
  stats.segment.decrease(c, 1);
  stats.reserved_bytes.decrease(c, static_cast<std::int64_t>(block.size));
  if (is_oversize(block.size)) stats.oversize_segments.decrease(1);
  count_device_release(block.pool);
  remove_free(index);
  retire_segment(block.segment);
  state_.blocks.retire(index);
}

// R7.9: one for each cudaFree and for each unmapped piece, which with expandable segments can be more than
// was counted up.
void CachingAllocator::count_device_release(PoolIndex pool) {
  const std::size_t group = group_of(pool);
  if (group == 0) return;
  if (--state_.groups[group].device_allocations < 0) {
    throw AllocatorFault("internal assertion: a private pool gave back more device allocations than it made");
  }
}

// R6.1 to R6.4: giving back cached blocks that were not used for long, before the driver is asked for more.

// R0.4: the block's age counts from here.
void CachingAllocator::start_age(BlockIndex index) {
  if (index >= state_.gc_base.size()) state_.gc_base.resize(state_.blocks.size());
  state_.gc_base[index] = state_.pools[state_.blocks[index].pool].calls;
}

std::uint64_t CachingAllocator::age(BlockIndex index) const {
  const std::uint64_t since = index < state_.gc_base.size() ? state_.gc_base[index] : 0;
  return state_.pools[state_.blocks[index].pool].calls - since;
}

void CachingAllocator::collect_garbage() {
  constexpr PoolIndex kDefaultLargePool = 1;  // R6.1: whatever the pool of the request
  const auto allowed =
      static_cast<Bytes>(state_.settings.garbage_collection_threshold * static_cast<double>(*state_.limit));
  if (total_reserved() <= allowed) return;
  const Bytes target = total_reserved() - allowed;  // R6.2: the size of the request does not matter

  const Pool& pool = state_.pools[kDefaultLargePool];
  std::uint64_t total_age = 0;  // R6.3
  std::uint64_t count = 0;
  for (const BlockIndex block : pool.free.in_order(state_.blocks)) {
    if (state_.blocks[block].is_split()) continue;
    total_age += age(block);
    ++count;
  }

  // R6.4: the mean age is fixed within a pass, and a pass is not cut short when the target is reached.
  Bytes reclaimed = 0;
  bool freed = true;
  while (reclaimed < target && freed && count > 0) {
    freed = false;
    const double mean_age = static_cast<double>(total_age) / static_cast<double>(count);
    for (const BlockIndex index : pool.free.in_order(state_.blocks)) {
      const Block& block = state_.blocks[index];
      if (block.is_split() || block.expandable || static_cast<double>(age(index)) < mean_age) continue;
      reclaimed += block.size;
      total_age -= age(index);
      --count;
      freed = true;
      release_plain(index);
    }
  }
}

}  // namespace vramlab
