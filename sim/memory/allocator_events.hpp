// What a caching allocator does, entry by entry, as PyTorch's memory history records it (R11.3).
#pragma once

#include <cstdint>

#include "sim/core/units.hpp"
#include "sim/memory/allocator.hpp"

namespace vramlab {

/// One entry of the allocator's history.
struct AllocatorEvent {
  enum class Action : std::uint8_t {
    alloc,           ///< size = what was requested, not the block's size
    free_requested,  ///< size = what had been requested
    free_completed,  ///< the same; later than free_requested when other streams used the block
    segment_alloc,   ///< cudaMalloc; size of the segment
    segment_free,    ///< cudaFree
    segment_map,     ///< the range mapped in an expandable segment
    segment_unmap,   ///< the range unmapped
    oom,             ///< address = free memory of the device, size = rounded size of the request
  };

  Action action{};
  Address address = 0;
  Bytes size = 0;
  StreamId stream = 0;

  friend bool operator==(const AllocatorEvent&, const AllocatorEvent&) = default;
};

/// Receives the history while it happens.
class AllocatorListener {
 public:
  virtual ~AllocatorListener() = default;

  /// Called in the order of the history. Must not call the allocator.
  virtual void on_event(const AllocatorEvent& event) = 0;
};

}  // namespace vramlab
