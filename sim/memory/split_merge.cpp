// The tables and lists that blocks and segments live in.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/rounding.hpp"

namespace vramlab {

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
