// R6.1 to R6.4: giving back cached blocks that were not used for long, before the driver is asked for more.
#include <cstdint>

#include "sim/memory/caching_allocator.hpp"

namespace vramlab {

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
