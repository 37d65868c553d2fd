// R3.1, R3.2 and R3.6: cutting blocks and joining them, and the tables and lists they live in.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/rounding.hpp"

namespace vramlab {

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

void CachingAllocator::refuse_block(BlockIndex index) {
  throw InternalError("block id " + std::to_string(index) + " names no block");
}

}  // namespace vramlab
