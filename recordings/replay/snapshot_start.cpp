// The start of a replay whose history does not begin with an empty allocator.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "recordings/replay/snapshot_replay.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {
namespace {

using State = SnapshotBlock::State;

constexpr std::size_t kMostPools = 1000;
// A round number of entries is what a full ring buffer holds (R11.7).
constexpr std::size_t kRound = 1000;

BlockState state_of(State state) {
  if (state == State::inactive) return BlockState::inactive;
  return state == State::active_pending_free ? BlockState::pending_free : BlockState::allocated;
}

/// Makes the room in front of a mapped run part of a reserved range.
void add_hole(SegmentView& range, Address end) {
  const Address from =
      range.blocks.empty() ? range.base : range.blocks.back().address + range.blocks.back().size;
  if (from < end) range.blocks.push_back({{}, from, end - from, 0, BlockState::unmapped});
}

void add_blocks(SegmentView& view, const SnapshotSegment& segment) {
  for (const SnapshotBlock& block : segment.blocks) {
    view.blocks.push_back({{}, block.address, block.size, block.requested, state_of(block.state)});
  }
}

}  // namespace

void SnapshotReplay::start_from_rebuilt() {
  initial_ = rebuild_initial_state(snapshot_, result_.device, allocator_->settings());
  result_.initial_state = "rebuilt";
  result_.inferred_bytes = initial_.inferred_bytes;
  result_.inferred_blocks = initial_.inferred_blocks();
  result_.initial_blocks = initial_.blocks_in_file + result_.inferred_blocks;
  if (trace_.size() % kRound == 0) {
    result_.warnings.push_back("the history has exactly " + std::to_string(trace_.size()) +
                               " entries: probably older ones were overwritten (max_entries)");
  }
  Bytes held = 0;
  for (const SnapshotSegment& segment : initial_.segments) {
    if (segment.total_size > segments_->device_total() - held) {
      throw InputError("/segments", "more memory is held than the device has.");
    }
    held += segment.total_size;
    if (segment.expandable) {
      segments_->hold_mapped(segment.total_size);
    } else {
      segments_->hold_segment(segment.address, segment.total_size);
    }
  }
  make_initial_pools();
  allocator_->start_from(initial_views());
  take_over_blocks();
}

// Their graphs are alive, or they would not be in the file.
void SnapshotReplay::make_initial_pools() {
  for (const SnapshotSegment& segment : initial_.segments) {
    if (segment.pool.is_default() || pools_.count(segment.pool) > 0) continue;
    if (pools_.size() == kMostPools) throw InputError("/segments", "too many private pools.");
    const PoolId pool = allocator_->begin_capture(segment.stream);
    allocator_->end_capture(pool);
    pools_[segment.pool] = pool;
  }
}

// Mapped runs with one base are one segment, and what lies between them is not mapped.
std::vector<SegmentView> SnapshotReplay::initial_views() const {
  std::map<Address, SegmentView> views;
  for (std::size_t i = 0; i < initial_.segments.size(); ++i) {
    const SnapshotSegment& segment = initial_.segments[i];
    SegmentView& view = views[initial_.bases[i]];
    view.base = initial_.bases[i];
    view.stream = segment.stream;
    view.large = segment.large;
    view.expandable = segment.expandable;
    if (!segment.pool.is_default()) view.pool = pools_.at(segment.pool);
    add_hole(view, segment.address);
    add_blocks(view, segment);
    view.size = segment.address + segment.total_size - view.base;
  }
  std::vector<SegmentView> list;
  const Bytes total = segments_->device_total();
  for (auto& [base, view] : views) {
    if (view.expandable) {  // R5.2
      const Bytes page = view.large ? allocator_->settings().large_segment_size : kSmallSegment;
      view.size = std::max(view.size, round_up(total + total / 8, page));
      add_hole(view, view.base + view.size);
    }
    list.push_back(std::move(view));
  }
  return list;
}

// Nobody knows which streams pending frees wait for; each gets one of its own, as in free().
void SnapshotReplay::take_over_blocks() {
  std::map<Address, BlockId> allocated;
  for (const SegmentView& view : allocator_->segments()) {
    for (const BlockView& block : view.blocks) {
      if (block.state == BlockState::allocated) allocated.emplace(block.address, block.id);
    }
  }
  for (const SnapshotSegment& segment : initial_.segments) {
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == State::inactive) continue;
      const BlockId id = allocated.at(block.address);
      if (block.state == State::active_allocated) {
        live_[block.address] = id;
        continue;
      }
      allocator_->record_stream(id, next_unknown_stream_--);
      allocator_->free(id);
      pending_[block.address] = id;
    }
  }
}

}  // namespace vramlab
