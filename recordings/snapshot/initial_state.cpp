#include "recordings/snapshot/initial_state.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "recordings/snapshot/history.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;
using State = SnapshotBlock::State;

/// Held memory at some moment of a history: a cudaMalloc, or a mapped run of an expandable segment. What no
/// final segment and no entry tells is empty.
struct UndoneRange {
  Address end = 0;
  StreamId stream = 0;
  bool expandable = false;
  std::optional<bool> large;
  std::optional<SnapshotPool> pool;
};

/// A block that was held or waited for other streams at that moment.
struct UndoneBlock {
  Bytes size = 0;  ///< 0 = not told: it was freed later on
  Bytes requested = 0;
  bool pending = false;       ///< freed already
  bool size_in_file = false;  ///< it lives to the end, so the final segments tell its size
  StackId stack = 0;          ///< of its allocation
};

// What an allocator can hold: blocks that cover their segment in address order without holes (R0).
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

/// The memory of one device before the entries that were undone.
class UndoneTrace {
 public:
  using Ranges = std::map<Address, UndoneRange>;
  using Blocks = std::map<Address, UndoneBlock>;

  /// Begins at the end: with the final segments. `snapshot` must outlive it and have a history of `device`.
  UndoneTrace(const TorchSnapshot& snapshot, int device)
      : snapshot_(snapshot),
        trace_(snapshot.traces.at(static_cast<std::size_t>(device))),
        where_("/device_traces/" + std::to_string(device)),
        frees_named_(frees_name_allocations(trace_)) {
    for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
      const SnapshotSegment& segment = snapshot.segments[i];
      if (segment.device != device) continue;
      require_covered(segment, i);
      const Address end = segment.address + segment.total_size;
      if (is_held(segment.address, end)) {
        throw InputError("/segments/" + std::to_string(i), "lies over another segment.");
      }
      ranges_[segment.address] = {end, segment.stream, segment.expandable, segment.large, segment.pool};
      for (const SnapshotBlock& block : segment.blocks) {
        if (block.state == State::inactive) continue;
        blocks_[block.address] = {block.size, block.requested, block.state == State::active_pending_free,
                                  true, block.stack};
      }
    }
  }

  /// Undoes the whole history. Throws InputError, naming the entry, where one cannot have happened: then
  /// segments and history do not belong together, or some kinds of entries were not recorded.
  void undo_all() {
    for (entry_ = trace_.size(); entry_-- > 0;) undo(trace_[entry_]);
  }

  [[nodiscard]] const Ranges& ranges() const { return ranges_; }
  [[nodiscard]] const Blocks& blocks() const { return blocks_; }

 private:
  [[noreturn]] void refuse(const char* why) const {
    const TraceEntry& entry = trace_[entry_];
    throw InputError(where_ + '/' + std::to_string(entry_),
                     std::string(name_of(entry.action)) + " of " + std::to_string(entry.size) + " bytes at " +
                         std::to_string(entry.address) + " contradicts the final segments: " + why +
                         ". Segments and history do not belong together, or some kinds of entries were not "
                         "recorded (skip_actions).");
  }

  void undo(const TraceEntry& entry) {
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

  void undo_alloc(const TraceEntry& entry) {
    const auto block = blocks_.find(entry.address);
    if (block == blocks_.end()) refuse("no block is in use there afterwards");
    if (block->second.pending) refuse("the block there was freed before");
    if (block->second.size_in_file && block->second.size < entry.size) refuse("the block there is smaller");
    blocks_.erase(block);
    learn_end_of_block_before(entry.address);
  }

  // A request gets the low end of a free block (R3.2), and free neighbours are one (R3.6). So if nothing in
  // use lay between the block before and the new one, the one before ended where the new one began.
  void learn_end_of_block_before(Address address) {
    auto before = blocks_.lower_bound(address);
    if (before == blocks_.begin()) return;
    --before;
    if (before->second.size != 0) return;
    const auto range = range_at(address);
    if (range == ranges_.end() || before->first < range->first) return;
    before->second.size = address - before->first;
  }

  void undo_free_completed(const TraceEntry& entry) {
    const auto range = range_at(entry.address);
    if (range == ranges_.end() || range->second.end - entry.address < entry.size) {
      refuse("no segment holds that memory");
    }
    const StackId stack = frees_named_ ? entry.stack : 0;
    const bool is_new = blocks_.emplace(entry.address, UndoneBlock{0, entry.size, true, false, stack}).second;
    if (!is_new) refuse("a block is in use there afterwards");
  }

  void undo_free_requested(const TraceEntry& entry) {
    const auto block = blocks_.find(entry.address);
    if (block == blocks_.end() || !block->second.pending) refuse("its completion is nowhere recorded");
    block->second.pending = false;
  }

  void undo_segment_alloc(const TraceEntry& entry) {
    const auto range = ranges_.find(entry.address);
    const Address end = entry.address + entry.size;
    if (range == ranges_.end() || range->second.end != end || range->second.expandable) {
      refuse("there is no such segment afterwards");
    }
    if (holds_blocks(entry.address, end)) refuse("blocks were in use there before");
    ranges_.erase(range);
  }

  // The range is cut out of its run.
  void undo_map(const TraceEntry& entry) {
    const auto range = range_at(entry.address);
    const Address end = entry.address + entry.size;
    if (range == ranges_.end() || range->second.end - entry.address < entry.size ||
        !range->second.expandable) {
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

  void undo_release(const TraceEntry& entry) {
    const bool expandable = entry.action == Action::segment_unmap;
    Address start = entry.address;
    UndoneRange range{start + entry.size, entry.stream, expandable, {}, {}};
    if (entry.pool >= 0) range.pool = snapshot_.pools[static_cast<std::size_t>(entry.pool)];
    if (range.end <= start || is_held(start, range.end)) refuse("the memory is held afterwards");
    for (const Address neighbour : {range.end, start - 1}) {
      const auto other = range_at(neighbour);
      const bool joins = other != ranges_.end() && expandable && other->second.expandable &&
                         other->second.stream == range.stream;
      if (!joins) continue;
      if (!range.large) range.large = other->second.large;
      if (!range.pool) range.pool = other->second.pool;
      start = std::min(start, other->first);
      range.end = std::max(range.end, other->second.end);
      ranges_.erase(other);
    }
    ranges_[start] = range;
  }

  // Whether any of it is.
  [[nodiscard]] bool is_held(Address start, Address end) const {
    const auto next = ranges_.lower_bound(end);
    return next != ranges_.begin() && std::prev(next)->second.end > start;
  }

  [[nodiscard]] bool holds_blocks(Address start, Address end) const {
    const auto block = blocks_.lower_bound(start);
    return block != blocks_.end() && block->first < end;
  }

  [[nodiscard]] Ranges::iterator range_at(Address address) {
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return ranges_.end();
    --range;
    return address < range->second.end ? range : ranges_.end();
  }

  const TorchSnapshot& snapshot_;
  const std::vector<TraceEntry>& trace_;
  std::string where_;
  bool frees_named_;
  std::size_t entry_ = 0;  ///< the one being undone
  Ranges ranges_;
  Blocks blocks_;
};

// --- Where the reserved ranges of expandable segments begin ---

using Key = std::tuple<StreamId, bool, SnapshotPool>;

/// One reserved range, as far as it is mapped.
struct Reserved {
  Address base = 0;
  Address end = 0;  ///< of the highest byte that was ever mapped
  std::int64_t mapped = 0;
};

// What is mapped is for the request that follows.
std::optional<bool> is_for_large(const std::vector<TraceEntry>& trace, std::size_t map,
                                 const AllocatorSettings& settings) {
  for (std::size_t i = map + 1; i < trace.size(); ++i) {
    const Action action = trace[i].action;
    if (action != Action::alloc && action != Action::oom) continue;
    return !is_small(rounded_size(std::max<Bytes>(trace[i].size, 1), settings));
  }
  return std::nullopt;
}

/// For each of the `segments` that a device held at the beginning of its history: the base of its reserved
/// range, or its own address if it is a plain one. No file tells a base. Taken is the lowest address that is
/// mapped at the beginning, or later on while something of the range is still mapped: a hole in front that is
/// never filled makes no difference to this history (R5.3). Runs of one stream, kind and pool share a range
/// (R5.2).
std::vector<Address> find_bases(const TorchSnapshot& snapshot, int device, const AllocatorSettings& settings,
                                const std::vector<SnapshotSegment>& segments) {
  std::map<Key, Reserved> ranges;
  for (const SnapshotSegment& segment : segments) {
    if (!segment.expandable) continue;
    const Address end = segment.address + segment.total_size;
    const auto [range, is_new] =
        ranges.try_emplace({segment.stream, segment.large, segment.pool}, Reserved{segment.address, end, 0});
    range->second.base = std::min(range->second.base, segment.address);
    range->second.end = std::max(range->second.end, end);
    range->second.mapped += static_cast<std::int64_t>(segment.total_size);
  }
  const std::vector<TraceEntry>& trace = snapshot.traces[static_cast<std::size_t>(device)];
  for (std::size_t i = 0; i < trace.size() && !ranges.empty(); ++i) {
    const TraceEntry& entry = trace[i];
    if (entry.action == Action::segment_unmap) {
      for (auto& [key, range] : ranges) {
        if (std::get<StreamId>(key) != entry.stream || range.mapped == 0) continue;
        if (entry.address < range.base || entry.address >= range.end) continue;
        range.mapped -= static_cast<std::int64_t>(entry.size);
        break;
      }
    }
    if (entry.action != Action::segment_map) continue;
    const auto large = is_for_large(trace, i, settings);
    for (auto& [key, range] : ranges) {
      const auto& [stream, range_large, pool] = key;
      const bool same_pool = entry.pool < 0 || snapshot.pools[static_cast<std::size_t>(entry.pool)] == pool;
      if (range.mapped <= 0 || stream != entry.stream || range_large != large || !same_pool) continue;
      range.base = std::min(range.base, entry.address);
      range.end = std::max(range.end, entry.address + entry.size);
      range.mapped += static_cast<std::int64_t>(entry.size);
      break;
    }
  }

  std::vector<Address> bases;
  for (const SnapshotSegment& segment : segments) {
    bases.push_back(segment.expandable ? ranges.at({segment.stream, segment.large, segment.pool}).base
                                       : segment.address);
  }
  return bases;
}

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
                        undone.pending ? State::active_pending_free : State::active_allocated, undone.stack};
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
    return range_around_is_large(start, range.stream);
  }

  // Runs of one expandable segment share a reserved range, which is filled from its beginning on.
  [[nodiscard]] bool range_around_is_large(Address start, StreamId stream) const {
    const SnapshotSegment* below = nullptr;  // the nearest that begins at or below `start`
    const SnapshotSegment* above = nullptr;
    for (const SnapshotSegment& segment : snapshot_.segments) {
      if (segment.device != device_ || !segment.expandable || segment.stream != stream) continue;
      if (segment.address <= start) {
        if (below == nullptr || segment.address >= below->address) below = &segment;
      } else if (above == nullptr || segment.address < above->address) {
        above = &segment;
      }
    }
    return below != nullptr ? below->large : above == nullptr || above->large;
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
