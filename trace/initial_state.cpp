#include "trace/initial_state.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "sim/core/error.hpp"
#include "sim/memory/rounding.hpp"
#include "trace/reserved_ranges.hpp"
#include "trace/undone_trace.hpp"

namespace vramlab {
namespace {

using State = SnapshotBlock::State;
using BlockPlace = UndoneTrace::Blocks::const_iterator;

/// Fills undone ranges with blocks.
class Rebuilding {
 public:
  Rebuilding(const TorchSnapshot& snapshot, int device, const AllocatorSettings& settings)
      : snapshot_(snapshot), device_(device), settings_(settings), undone_(snapshot, device) {}

  InitialState run() {
    undone_.undo_all();
    BlockPlace block = undone_.blocks().begin();
    for (const auto& [start, range] : undone_.ranges()) {
      if (block != undone_.blocks().end() && block->first < start) refuse_stray(block->first);
      add_segment(start, range, block);
    }
    if (block != undone_.blocks().end()) refuse_stray(block->first);
    state_.bases = find_bases(snapshot_, device_, settings_, state_.segments);
    return std::move(state_);
  }

 private:
  [[noreturn]] void refuse_stray(Address address) const {
    throw InputError("/device_traces/" + std::to_string(device_),
                     "a block at " + std::to_string(address) +
                         " is in use before the first entry, and no segment holds it then. Segments and "
                         "history do not belong together.");
  }

  void add_segment(Address start, const UndoneRange& range, BlockPlace& block) {
    SnapshotSegment segment;
    segment.device = device_;
    segment.address = start;
    segment.total_size = range.end - start;
    segment.stream = range.stream;
    segment.expandable = range.expandable;
    segment.large = range.large ? *range.large : seems_large(start, range);
    segment.pool = range.pool.value_or(SnapshotPool{});
    Address place = start;
    while (block != undone_.blocks().end() && block->first < range.end) {
      add_free(segment, place, block->first);
      const auto next = std::next(block);
      const Address limit =
          next != undone_.blocks().end() && next->first < range.end ? next->first : range.end;
      add_active(segment, *block, limit);
      place = segment.blocks.back().address + segment.blocks.back().size;
      block = next;
    }
    add_free(segment, place, range.end);
    state_.segments.push_back(std::move(segment));
  }

  static void add_free(SnapshotSegment& segment, Address from, Address to) {
    if (from < to) segment.blocks.push_back({from, to - from, 0, State::inactive, 0});
  }

  void add_active(SnapshotSegment& segment, const UndoneTrace::Blocks::value_type& found, Address limit) {
    const auto& [address, undone] = found;
    SnapshotBlock block{address, 0, undone.requested,
                        undone.pending ? State::active_pending_free : State::active_allocated, 0};
    block.size = std::min(size_of(undone, segment, limit - address), limit - address);
    if (!undone.size_in_file) state_.inferred_bytes += block.size;
    if (!undone.pending) segment.allocated_size += block.size;
    segment.active_size += block.size;
    segment.requested_size += block.requested;
    segment.blocks.push_back(block);
  }

  // `room` = up to the next block in use, or the end of the segment.
  Bytes size_of(const UndoneBlock& block, const SnapshotSegment& segment, Bytes room) {
    if (block.size_in_file) return ++state_.blocks_in_file, block.size;
    if (block.size != 0) return ++state_.ended_by_neighbour, block.size;
    const Bytes rounded = rounded_size(std::max<Bytes>(block.requested, 1), settings_);
    if (!segment.large || segment.expandable || room <= rounded) return ++state_.exactly_rounded, rounded;
    if (rounded >= settings_.max_split_size) return ++state_.never_split, room;
    if (room - rounded <= kSmallLimit) return ++state_.tails_owned, room;
    return ++state_.taken_as_rounded, rounded;
  }

  // Of memory that was given back later on. A small segment is 2 MiB, and no large one is; pages of small
  // ranges are 2 MiB, those of large ones ten times that, so what was unmapped tells only in part.
  [[nodiscard]] bool seems_large(Address start, const UndoneRange& range) const {
    const Bytes size = range.end - start;
    if (!range.expandable) return size != kSmallSegment;
    if (size % settings_.large_segment_size != 0) return false;
    const auto inside = undone_.blocks().lower_bound(start);
    if (inside != undone_.blocks().end() && inside->first < range.end) {
      return !is_small(rounded_size(std::max<Bytes>(inside->second.requested, 1), settings_));
    }
    const auto known = kind_of_range_around(start, range.stream);
    return known.value_or(true);
  }

  // Runs of one expandable segment share a reserved range, which is filled from its beginning on.
  [[nodiscard]] std::optional<bool> kind_of_range_around(Address start, StreamId stream) const {
    const SnapshotSegment* below = nullptr;
    const SnapshotSegment* above = nullptr;
    for (const SnapshotSegment& segment : snapshot_.segments) {
      if (segment.device != device_ || !segment.expandable || segment.stream != stream) continue;
      const bool is_below = segment.address <= start;
      const SnapshotSegment*& nearest = is_below ? below : above;
      const bool nearer = nearest == nullptr || (is_below ? segment.address > nearest->address
                                                          : segment.address < nearest->address);
      if (nearer) nearest = &segment;
    }
    if (below != nullptr) return below->large;
    if (above != nullptr) return above->large;
    return std::nullopt;
  }

  const TorchSnapshot& snapshot_;
  int device_;
  const AllocatorSettings& settings_;
  UndoneTrace undone_;
  InitialState state_;
};

}  // namespace

InitialState rebuild_initial_state(const TorchSnapshot& snapshot, int device,
                                   const AllocatorSettings& settings) {
  return Rebuilding(snapshot, device, settings).run();
}

}  // namespace vramlab
