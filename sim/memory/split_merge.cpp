// R3.1, R3.2 and R3.6: cutting blocks and joining them, and the tables and lists they live in.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/rounding.hpp"

namespace vramlab {

// R3.1: the remainder is cut off only if something of that pool could live in it.
bool CachingAllocator::should_split(const Block& block, const Request& request) const {
  if (state_.groups[group_of(request.pool)].options.no_split) return false;
  const Bytes remainder = block.size - request.rounded;
  if (!is_large_pool(request.pool) || request.expandable) return remainder >= kMinBlock;
  return !is_oversize(request.rounded) && remainder > kSmallLimit;  // strict: 1 MiB stays with the block
}

// `block` may be an entry of the table itself.
BlockIndex CachingAllocator::new_block(const Block& block) {
  if (state_.spare_blocks.empty()) {
    state_.blocks.push_back(block);
    return static_cast<BlockIndex>(state_.blocks.size() - 1);
  }
  const BlockIndex index = state_.spare_blocks.back();
  state_.spare_blocks.pop_back();
  state_.blocks[index] = block;
  return index;
}

void CachingAllocator::retire_block(BlockIndex block) {
  state_.blocks[block].live = false;
  state_.spare_blocks.push_back(block);
}

// R3.2: the low part is [address, address + size) and keeps the table entry, so a segment's first block never
// changes it; the remainder is returned and keeps the old block's stale requested size (R8.9).
BlockIndex CachingAllocator::cut(BlockIndex index, Bytes size) {
  Block high = state_.blocks[index];
  high.address += size;
  high.size -= size;
  high.previous = index;
  const BlockIndex rest = new_block(high);
  if (high.next != kNoBlock) state_.blocks[high.next].previous = rest;
  Block& low = state_.blocks[index];
  low.size = size;
  low.next = rest;
  return rest;
}

// R3.6. The block is in no list; its neighbours leave theirs. The merged block takes the lower address and
// the requested size of the block that asked for the merge (R8.9).
CachingAllocator::Merged CachingAllocator::merge_with_neighbours(BlockIndex index) {
  BlockTable& blocks = state_.blocks;
  const bool mapped = blocks[index].mapped;
  const Bytes requested = blocks[index].requested;
  const BlockIndex previous = blocks[index].previous;
  const BlockIndex next = blocks[index].next;
  const auto can_join = [&](BlockIndex neighbour) {
    return neighbour != kNoBlock && blocks[neighbour].is_idle() && blocks[neighbour].mapped == mapped;
  };
  // `high` is given up and `low` takes its room.
  const auto join = [&](BlockIndex low, BlockIndex high) {
    blocks[low].size += blocks[high].size;
    blocks[low].next = blocks[high].next;
    if (blocks[low].next != kNoBlock) blocks[blocks[low].next].previous = low;
    retire_block(high);
  };

  Merged merged;
  const auto absorb = [&](BlockIndex neighbour) {
    ++merged.absorbed;
    merged.absorbed_bytes += blocks[neighbour].size;
    mapped ? remove_free(neighbour) : remove_unmapped(neighbour);
  };
  if (can_join(previous)) {
    absorb(previous);
    join(previous, index);
    index = previous;
  }
  if (can_join(next)) {
    absorb(next);
    join(index, next);
  }
  blocks[index].requested = requested;
  merged.block = index;
  return merged;
}

// Ages are kept only from the first counted search on (R0.4): until then all are 0.
void CachingAllocator::add_free(BlockIndex index) {
  Pool& pool = state_.pools[state_.blocks[index].pool];
  if (pool.calls != 0 || !state_.gc_base.empty()) start_age(index);
  pool.free.insert(state_.blocks, index);
}

void CachingAllocator::remove_free(BlockIndex index) {
  state_.pools[state_.blocks[index].pool].free.erase(state_.blocks, index);
}

// R0.2: by stream and address.
void CachingAllocator::add_unmapped(BlockIndex index) {
  const Block& block = state_.blocks[index];
  std::vector<UnmappedBlock>& list = state_.pools[block.pool].unmapped;
  const UnmappedBlock entry{block.stream, block.address, index};
  list.insert(std::lower_bound(list.begin(), list.end(), entry), entry);
}

void CachingAllocator::remove_unmapped(BlockIndex index) {
  const Block& block = state_.blocks[index];
  std::vector<UnmappedBlock>& list = state_.pools[block.pool].unmapped;
  const UnmappedBlock entry{block.stream, block.address, index};
  const auto found = std::lower_bound(list.begin(), list.end(), entry);
  if (found == list.end() || *found != entry)
    throw InternalError("block is not in its list of unmapped blocks");
  list.erase(found);
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

Block& CachingAllocator::block_at(BlockId id) {
  return const_cast<Block&>(std::as_const(*this).block_at(id));
}

const Block& CachingAllocator::block_at(BlockId id) const {
  const auto index = static_cast<BlockIndex>(id);
  if (index >= state_.blocks.size() || !state_.blocks[index].live) {
    throw InternalError("block id " + std::to_string(index) + " names no block");
  }
  return state_.blocks[index];
}

}  // namespace vramlab
