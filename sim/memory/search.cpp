// R2.3 to R2.5: the exceptions of the search for a cached block; and the pools that are asked before an OOM
// (R7.5).
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/every_operation.hpp"

namespace vramlab {

// R2.3: a block at the growing end counts with the unmapped tail behind it, so that holes are filled first.
// The walk ends at the first block that is no improvement, or at a plain one.
BlockIndex CachingAllocator::walk_to_least_extent(BlockIndex candidate) const {
  const auto extent = [this](const Block& block) {
    const bool open_ended = block.next != kNoBlock && !state_.blocks[block.next].mapped;
    return block.size + (open_ended ? state_.blocks[block.next].size : 0);
  };
  while (state_.blocks[candidate].expandable) {
    const Block& block = state_.blocks[candidate];
    const BlockIndex next = state_.pools[block.pool].free.next(state_.blocks, free_entry(block, candidate));
    if (next == kNoBlock || extent(state_.blocks[next]) >= extent(block)) break;
    candidate = next;
  }
  return candidate;
}

// R2.4: with the option off, expandable blocks are passed over.
BlockIndex CachingAllocator::first_plain_after(BlockIndex candidate) const {
  while (candidate != kNoBlock && state_.blocks[candidate].expandable) {
    const Block& block = state_.blocks[candidate];
    candidate = state_.pools[block.pool].free.next(state_.blocks, free_entry(block, candidate));
  }
  return candidate;
}

// R7.5: only for requests of the default pools, only cached blocks, the oldest pool that has one. The rest of
// the request then follows that pool, as if expandable segments were off.
BlockIndex CachingAllocator::search_pools_for_oom(Request& request) {
  if (group_of(request.pool) != 0) return kNoBlock;
  for (const std::size_t group : private_groups()) {
    const PoolGroup& candidate = state_.groups[group];
    if (candidate.uses == 0 || !candidate.options.use_on_oom) continue;
    const auto pool = static_cast<PoolIndex>(2 * group + (is_large_pool(request.pool) ? 1 : 0));
    const BlockIndex found = search(pool, request.rounded, request.stream, false);
    if (found == kNoBlock) continue;
    request.pool = pool;
    request.expandable = false;
    return found;
  }
  return kNoBlock;
}

}  // namespace vramlab
