// What an allocator held when a snapshot was taken, segment by segment.
#pragma once

#include <cstdint>
#include <vector>

#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// One segment, or the sums over all of them.
struct HeldMemory {
  Bytes reserved = 0;
  Bytes live = 0;  ///< in blocks in use, and in those freed that another stream still uses
  std::uint64_t live_blocks = 0;
  Bytes returnable = 0;    ///< what empty_cache() gives back to the card: free segments, free whole pages
  Bytes largest_free = 0;  ///< largest free block
  [[nodiscard]] Bytes idle() const { return reserved - live; }
};

struct HeldSegment : HeldMemory {
  Address address = 0;
  StreamId stream = 0;
  bool large = false;
  bool expandable = false;
  bool private_pool = false;
};

struct HeldState {
  std::vector<HeldSegment> segments;  ///< in the order of the file
  HeldMemory total;
};

/// The memory of one device, as its blocks say.
HeldState held_state(const TorchSnapshot& snapshot, int device);

}  // namespace vramlab
