#include "recordings/snapshot/held_state.hpp"

#include <algorithm>

#include "sim/memory/caching/rounding.hpp"

namespace vramlab {
namespace {

// Pages of an expandable segment are counted from where its range begins, which no file tells; taken is the
// beginning of the mapped run.
Bytes whole_pages(const SnapshotSegment& segment, const SnapshotBlock& block, Bytes page) {
  const Bytes first = round_up(block.address - segment.address, page);
  const Bytes end = (block.address - segment.address + block.size) / page * page;
  return end > first ? std::min(end - first, block.size) : 0;
}

HeldSegment held_segment(const SnapshotSegment& segment, Bytes large_page) {
  HeldSegment held;
  held.address = segment.address;
  held.stream = segment.stream;
  held.large = segment.large;
  held.expandable = segment.expandable;
  held.private_pool = !segment.pool.is_default();
  held.reserved = segment.total_size;
  const Bytes page = segment.large ? large_page : kSmallSegment;
  for (const SnapshotBlock& block : segment.blocks) {
    if (block.state != SnapshotBlock::State::inactive) {
      held.live += std::min(block.size, held.reserved - held.live);
      ++held.live_blocks;
      continue;
    }
    held.largest_free = std::max(held.largest_free, block.size);
    if (segment.expandable) held.returnable += whole_pages(segment, block, page);
  }
  if (!segment.expandable && held.live == 0) held.returnable = held.reserved;
  return held;
}

}  // namespace

HeldState held_state(const TorchSnapshot& snapshot, int device) {
  const Bytes large_page = allocator_settings_of(snapshot).large_segment_size;
  HeldState state;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    const HeldSegment held = held_segment(segment, large_page);
    state.segments.push_back(held);
    state.total.reserved += held.reserved;
    state.total.live += held.live;
    state.total.live_blocks += held.live_blocks;
    state.total.returnable += held.returnable;
    state.total.largest_free = std::max(state.total.largest_free, held.largest_free);
  }
  return state;
}

}  // namespace vramlab
