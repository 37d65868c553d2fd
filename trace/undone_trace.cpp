#include "trace/undone_trace.hpp"

#include <iterator>
#include <utility>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;
using State = SnapshotBlock::State;

// What an allocator can hold: blocks that cover their segment in address order without holes (section 0).
void require_covered(const SnapshotSegment& segment, std::size_t number) {
  Address place = segment.address;
  bool covered = segment.address + segment.total_size > segment.address;
  for (const SnapshotBlock& block : segment.blocks) {
    covered = covered && block.address == place && block.size > 0 && block.size <= segment.total_size;
    place += block.size;
  }
  if (!covered || place != segment.address + segment.total_size) {
    throw InputError("/segments/" + std::to_string(number), "its blocks do not cover it.");
  }
}

}  // namespace

UndoneTrace::UndoneTrace(const TorchSnapshot& snapshot, int device)
    : snapshot_(snapshot),
      trace_(snapshot.traces.at(static_cast<std::size_t>(device))),
      where_("/device_traces/" + std::to_string(device)) {
  for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
    const SnapshotSegment& segment = snapshot.segments[i];
    if (segment.device != device) continue;
    require_covered(segment, i);
    const auto next = ranges_.lower_bound(segment.address);
    if ((next != ranges_.end() && next->first < segment.address + segment.total_size) ||
        (next != ranges_.begin() && std::prev(next)->second.end > segment.address)) {
      throw InputError("/segments/" + std::to_string(i), "lies over another segment.");
    }
    ranges_[segment.address] = {segment.address + segment.total_size, segment.stream, segment.expandable,
                                segment.large, segment.pool};
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == State::inactive) continue;
      blocks_[block.address] = {block.size, block.requested, block.state == State::active_pending_free, true};
    }
  }
}

void UndoneTrace::refuse(const char* why) const {
  const TraceEntry& entry = trace_[entry_];
  throw InputError(where_ + '/' + std::to_string(entry_),
                   std::string(name_of(entry.action)) + " of " + std::to_string(entry.size) + " bytes at " +
                       std::to_string(entry.address) + " contradicts the final segments: " + why +
                       ". Segments and history do not belong together, or some kinds of entries were not "
                       "recorded (skip_actions).");
}

void UndoneTrace::undo_all() {
  for (entry_ = trace_.size(); entry_-- > 0;) undo(trace_[entry_]);
}

void UndoneTrace::undo(const TraceEntry& entry) {
  switch (entry.action) {
    case Action::alloc:
      return undo_alloc(entry);
    case Action::free_requested:
      return undo_free_requested(entry);
    case Action::free_completed:
      return undo_free_completed(entry);
    case Action::segment_alloc:
      return undo_segment_alloc(entry);
    case Action::segment_map:
      return undo_map(entry);
    case Action::segment_free:
    case Action::segment_unmap:
      return undo_release(entry);
    case Action::oom:
    case Action::snapshot:
    case Action::other:
      return;
  }
}

void UndoneTrace::undo_alloc(const TraceEntry& entry) {
  const auto block = blocks_.find(entry.address);
  if (block == blocks_.end()) refuse("no block is in use there afterwards");
  if (block->second.pending) refuse("the block there was freed before");
  if (block->second.size_in_file && block->second.size < entry.size) refuse("the block there is smaller");
  blocks_.erase(block);
  learn_end_of_block_before(entry.address);
}

// A request gets the low end of a free block (R3.2), and free neighbours are one (R3.6). So if nothing in use
// lay between the block before and the new one, the one before ended where the new one began.
void UndoneTrace::learn_end_of_block_before(Address address) {
  auto before = blocks_.lower_bound(address);
  if (before == blocks_.begin()) return;
  --before;
  if (before->second.size != 0) return;
  const auto range = range_at(address);
  if (range == ranges_.end() || before->first < range->first) return;
  before->second.size = address - before->first;
}

void UndoneTrace::undo_free_completed(const TraceEntry& entry) {
  const auto range = range_at(entry.address);
  if (range == ranges_.end() || range->second.end - entry.address < entry.size) {
    refuse("no segment holds that memory");
  }
  const bool is_new = blocks_.emplace(entry.address, UndoneBlock{0, entry.size, true, false}).second;
  if (!is_new) refuse("a block is in use there afterwards");
}

void UndoneTrace::undo_free_requested(const TraceEntry& entry) {
  const auto block = blocks_.find(entry.address);
  if (block == blocks_.end() || !block->second.pending) refuse("its completion is nowhere recorded");
  block->second.pending = false;
}

void UndoneTrace::undo_segment_alloc(const TraceEntry& entry) {
  const auto range = ranges_.find(entry.address);
  const Address end = entry.address + entry.size;
  if (range == ranges_.end() || range->second.end != end || range->second.expandable) {
    refuse("there is no such segment afterwards");
  }
  if (holds_blocks(entry.address, end)) refuse("blocks were in use there before");
  ranges_.erase(range);
}

// The range is cut out of its run.
void UndoneTrace::undo_map(const TraceEntry& entry) {
  const auto range = range_at(entry.address);
  const Address end = entry.address + entry.size;
  if (range == ranges_.end() || range->second.end - entry.address < entry.size || !range->second.expandable) {
    refuse("there is no such memory of an expandable segment afterwards");
  }
  if (holds_blocks(entry.address, end)) refuse("blocks were in use there before");
  UndoneRange tail = range->second;
  if (range->first == entry.address) {
    ranges_.erase(range);
  } else {
    range->second.end = entry.address;
  }
  if (end < tail.end) ranges_.emplace(end, std::move(tail));
}

void UndoneTrace::undo_release(const TraceEntry& entry) {
  const bool expandable = entry.action == Action::segment_unmap;
  UndoneRange range{entry.address + entry.size, entry.stream, expandable, {}, {}};
  if (entry.pool >= 0) range.pool = snapshot_.pools[static_cast<std::size_t>(entry.pool)];
  auto next = ranges_.lower_bound(entry.address);
  const bool overlaps = (next != ranges_.end() && next->first < range.end) ||
                        (next != ranges_.begin() && std::prev(next)->second.end > entry.address);
  if (entry.size == 0 || range.end < entry.address || overlaps) refuse("the memory is held afterwards");

  Address start = entry.address;
  const auto joins = [&](const UndoneRange& other) {
    return expandable && other.expandable && other.stream == range.stream;
  };
  const auto learn = [&](const UndoneRange& other) {
    if (!range.large) range.large = other.large;
    if (!range.pool) range.pool = other.pool;
  };
  if (next != ranges_.end() && next->first == range.end && joins(next->second)) {
    learn(next->second);
    range.end = next->second.end;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    const auto previous = std::prev(next);
    if (previous->second.end == start && joins(previous->second)) {
      learn(previous->second);
      start = previous->first;
      ranges_.erase(previous);
    }
  }
  ranges_[start] = range;
}

bool UndoneTrace::holds_blocks(Address start, Address end) const {
  const auto block = blocks_.lower_bound(start);
  return block != blocks_.end() && block->first < end;
}

UndoneTrace::Ranges::iterator UndoneTrace::range_at(Address address) {
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return ranges_.end();
  --range;
  return address < range->second.end ? range : ranges_.end();
}

}  // namespace vramlab
