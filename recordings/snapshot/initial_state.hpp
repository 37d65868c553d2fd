// The memory that a device's allocator held before the first entry of its history, by undoing it.
#pragma once

#include <cstdint>
#include <vector>

#include "recordings/snapshot/torch_snapshot.hpp"
#include "sim/memory/caching/allocator_settings.hpp"

namespace vramlab {

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
