// What the history of a device tells: the program's actions, uses of private pools, whether it is whole, the
// limit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// The entries of a device; none for one that the snapshot does not know.
std::span<const TraceEntry> history_of(const TorchSnapshot& snapshot, int device);

/// Whether frees carry the stacks of their allocations, so that those of blocks from before the history are
/// known. PyTorch records either these or, by default, where a block was freed (R11.6); which, the blocks
/// allocated and freed within the history tell. No where none does.
bool frees_name_allocations(std::span<const TraceEntry> trace);

/// Where each block was allocated: what its entry says, or, where entries carry no stacks (context "state",
/// R11.6), of a block that lives to the end the final segments. The snapshot must outlive it.
class AllocationStacks {
 public:
  AllocationStacks(const TorchSnapshot& snapshot, int device);

  /// Of the `alloc` at that place in the history.
  [[nodiscard]] StackId at(std::size_t entry) const;

 private:
  std::span<const TraceEntry> trace_;
  std::unordered_map<std::size_t, StackId> of_final_blocks_;  ///< by entry
};

/// Whether a history tells anything of what the program asked for; notes of earlier snapshots do not.
bool tells_of_program(std::span<const TraceEntry> trace);

/// Entries of an action that is not known here; they are passed over.
std::uint64_t skipped_entries(std::span<const TraceEntry> trace);

/// The devices that an answer is about: those whose history tells of the program; if none does, those that
/// hold memory. With `device`, that one. Throws InputError, naming `file`, if the snapshot knows no such
/// device.
std::vector<int> devices_to_answer(const TorchSnapshot& snapshot, std::optional<int> device,
                                   const std::string& file);

/// One action of the program with all entries that it left, or entries that belong to no later action.
struct TraceStep {
  enum class Kind : std::uint8_t {
    allocation,     ///< ends with `alloc`
    failure,        ///< ends with `oom`
    free,           ///< ends with `free_requested` and `free_completed` of one block
    deferred_free,  ///< ends with `free_requested`; other streams still used the block
    none,           ///< what happened before a mark or the end, without another action
  };

  Kind kind = Kind::none;
  std::size_t first = 0;   ///< first entry
  std::size_t action = 0;  ///< the entry of the action itself; those before it led to it
  std::size_t end = 0;     ///< past the last entry

  [[nodiscard]] bool is_request() const { return kind == Kind::allocation || kind == Kind::failure; }
};

/// Cuts a history into steps. No step reaches over one of the `cuts`, which are places in the history in
/// ascending order: moments at which the program is known to have been outside the allocator.
std::vector<TraceStep> cut_into_steps(std::span<const TraceEntry> trace, std::span<const std::size_t> cuts);

/// Whether an entry gives memory back to the device.
constexpr bool is_release(TraceEntry::Action action) {
  return action == TraceEntry::Action::segment_free || action == TraceEntry::Action::segment_unmap;
}
/// Whether an entry gets memory from the device.
constexpr bool is_acquisition(TraceEntry::Action action) {
  return action == TraceEntry::Action::segment_alloc || action == TraceEntry::Action::segment_map;
}
/// What an entry adds to the reserved bytes.
constexpr std::int64_t reserved_change(const TraceEntry& entry) {
  const auto size = static_cast<std::int64_t>(entry.size);
  return is_acquisition(entry.action) ? size : is_release(entry.action) ? -size : 0;
}

// When requests went to private pools, read off the segments that are left at the end (spec 16.3, 16.5).

/// A stretch of a history in which the requests of one stream went to a private pool, as in a graph capture.
struct PoolUse {
  SnapshotPool pool;
  StreamId stream = 0;
  std::size_t first = 0;  ///< entry of the first allocation in the pool
  std::size_t last = 0;   ///< entry of the last one
};

/// The stretches of one device in the order of their beginnings. The pool of an allocation is the one its
/// entry names (after torch 2.11), else that of the final segment in which it lies. Pools that were released
/// before the end leave no sign. A stretch ends where its stream allocates elsewhere, or where default
/// segments are released, which no capture does by itself.
std::vector<PoolUse> find_pool_uses(const TorchSnapshot& snapshot, int device);

// Whether a device's history is whole: from an empty allocator to the final segments, without contradiction.

/// Bytes that the allocator of `device` had reserved before the first entry of its history, by undoing all of
/// it from the final segments (R11.12). Not 0 = the history is not whole; negative = entries are missing.
std::int64_t reserved_at_start(const TorchSnapshot& snapshot, int device);

/// Throws InputError if the device has no history.
void require_history(const TorchSnapshot& snapshot, int device);

/// Throws InputError, naming the entry where there is one, if the device has no history, if the history does
/// not start from an empty allocator, or if it acquires memory that is held already or releases memory that
/// is not.
void require_whole_history(const TorchSnapshot& snapshot, int device);

// What the failures of a recording say about the memory it had.

struct RecordedLimit {
  /// Of a limit above which the allocator might not go: the largest that explains every failure. Empty if the
  /// device was full at every failure, or nothing failed.
  std::optional<Bytes> limit;
  /// Bytes the card had for this allocator at the failure at which it had least, if it was full at one.
  std::optional<Bytes> room;
};

/// Reads them off the history of `device`: an `oom` entry says how much was free on the card (R4.10), and
/// what was reserved at that moment follows from the entries before it.
RecordedLimit recorded_limit(const TorchSnapshot& snapshot, int device);

}  // namespace vramlab
