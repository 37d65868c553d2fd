// What every allocation and every free goes through, inline for the sources that do it: R2.1 to R2.6 and
// R3.6.
#pragma once

#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {

// R2.1 to R2.6: which cached block serves a request. The block leaves its free list; kNoBlock is a miss.
[[gnu::always_inline]] inline BlockIndex CachingAllocator::search(PoolIndex pool_index, Bytes size,
                                                                  StreamId stream, bool expandable) {
  Pool& pool = state_.pools[pool_index];
  if (gc_active()) [[unlikely]] {  // R2.1
    ++pool.calls;
    state_.has_ages = true;
  }
  BlockIndex found = pool.free.first_not_less(state_.blocks, stream, size);  // R2.2
  if (found == kNoBlock) return kNoBlock;
  if (state_.blocks[found].expandable) {
    found = expandable ? walk_to_least_extent(found) : first_plain_after(found);
    if (found == kNoBlock) return kNoBlock;
  }
  if (is_refused_as_oversize(state_.blocks[found].size, size)) return kNoBlock;
  pool.free.erase(state_.blocks, found);  // R2.6
  return found;
}

// R3.6. The block is in no list; its neighbours leave theirs. The merged block takes the lower address and
// the requested size of the block that asked for the merge (R8.9).
inline CachingAllocator::Merged CachingAllocator::merge_with_neighbours(BlockIndex index, bool mapped) {
  BlockTable& blocks = state_.blocks;
  const Bytes requested = blocks[index].requested;
  const BlockIndex previous = blocks[index].previous;
  const BlockIndex next = blocks[index].next;
  const auto can_join = [&](BlockIndex neighbour) {
    return neighbour != kNoBlock && (mapped ? blocks[neighbour].cached : !blocks[neighbour].mapped);
  };
  Merged merged{.block = index};
  const auto absorb = [&](BlockIndex neighbour) {
    ++merged.absorbed;
    merged.absorbed_bytes += blocks[neighbour].size;
    mapped ? remove_free(neighbour) : remove_unmapped(neighbour);
  };
  if (can_join(previous)) {
    absorb(previous);
    blocks.join(previous, index);
    merged.block = previous;
  }
  if (can_join(next)) {
    absorb(next);
    blocks.join(merged.block, next);
  }
  blocks[merged.block].requested = requested;
  return merged;
}

}  // namespace vramlab
