// What a program did, read off the history of its allocator: which entries belong to which action.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/torch_snapshot.hpp"

namespace vramlab {

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

}  // namespace vramlab
