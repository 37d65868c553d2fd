// Undoing a history from the final segments backwards (R11.12).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "trace/torch_snapshot.hpp"

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

}  // namespace vramlab
