// The memory that a device's allocator held before the first entry of its history, by undoing it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recordings/snapshot/torch_snapshot.hpp"
#include "sim/memory/caching/allocator_settings.hpp"

namespace vramlab {

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
};

/// The memory of one device before the entries that were undone.
class UndoneTrace {
 public:
  using Ranges = std::map<Address, UndoneRange>;
  using Blocks = std::map<Address, UndoneBlock>;

  /// Begins at the end: with the final segments. `snapshot` must outlive it and have a history of `device`.
  UndoneTrace(const TorchSnapshot& snapshot, int device);

  /// Undoes the whole history. Throws InputError, naming the entry, where one cannot have happened: then
  /// segments and history do not belong together, or some kinds of entries were not recorded.
  void undo_all();

  [[nodiscard]] const Ranges& ranges() const { return ranges_; }
  [[nodiscard]] const Blocks& blocks() const { return blocks_; }

 private:
  [[noreturn]] void refuse(const char* why) const;
  void undo(const TraceEntry& entry);
  void undo_alloc(const TraceEntry& entry);
  void undo_free_completed(const TraceEntry& entry);
  void undo_free_requested(const TraceEntry& entry);
  void undo_segment_alloc(const TraceEntry& entry);
  void undo_map(const TraceEntry& entry);
  void undo_release(const TraceEntry& entry);
  void learn_end_of_block_before(Address address);
  [[nodiscard]] bool holds_blocks(Address start, Address end) const;
  [[nodiscard]] Ranges::iterator range_at(Address address);

  const TorchSnapshot& snapshot_;
  const std::vector<TraceEntry>& trace_;
  std::string where_;
  std::size_t entry_ = 0;  ///< the one being undone
  Ranges ranges_;
  Blocks blocks_;
};

// Where the reserved ranges of expandable segments begin.

/// For each of the `segments` that a device held at the beginning of its history: the base of its reserved
/// range, or its own address if it is a plain one. No file tells a base. Taken is the lowest address that is
/// mapped at the beginning, or later on while something of the range is still mapped: a hole in front that is
/// never filled makes no difference to this history (R5.3). Runs of one stream, kind and pool share a range
/// (R5.2).
std::vector<Address> find_bases(const TorchSnapshot& snapshot, int device, const AllocatorSettings& settings,
                                const std::vector<SnapshotSegment>& segments);

// The memory that a device's allocator held before the first entry of its history.

/// What a snapshot at the beginning of the history would have shown, and how the sizes of the blocks in use
/// were found. Requested sizes of free blocks are 0: nothing tells them.
struct InitialState {
  std::vector<SnapshotSegment> segments;  ///< in address order; no stacks
  /// Of each segment, parallel to `segments`: where the reserved range of an expandable one begins, as far as
  /// the history shows it. The base of a plain one.
  std::vector<Address> bases;

  std::uint64_t blocks_in_file = 0;  ///< live to the end too, so their sizes stand in the file

  // Blocks that were freed later on: the history tells what was requested, and the size is inferred.
  std::uint64_t ended_by_neighbour = 0;  ///< a later block was cut off right behind it: exact
  std::uint64_t exactly_rounded = 0;     ///< small or expandable, or no room behind it: the rounded request
  std::uint64_t tails_owned = 0;  ///< up to 1 MiB behind the rounded request is too little to be cut off
  std::uint64_t never_split = 0;  ///< from max_split_size on a block has all the room (R3.1)
  /// More than 1 MiB is free behind the rounded request. The block is taken to end there; it may own up to
  /// 1 MiB more, if what follows was once a block of its own.
  std::uint64_t taken_as_rounded = 0;
  Bytes inferred_bytes = 0;  ///< of all blocks whose size was inferred

  [[nodiscard]] bool empty() const { return segments.empty(); }
  [[nodiscard]] std::uint64_t inferred_blocks() const {
    return ended_by_neighbour + exactly_rounded + tails_owned + never_split + taken_as_rounded;
  }
};

/// Rebuilds the initial state by undoing the history from the final segments (R11.12). `settings` are those
/// of the whole history. Throws InputError, naming the entry, if segments and history contradict each other.
InitialState rebuild_initial_state(const TorchSnapshot& snapshot, int device,
                                   const AllocatorSettings& settings);

}  // namespace vramlab
