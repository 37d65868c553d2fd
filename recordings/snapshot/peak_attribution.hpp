// Who held the memory at a peak: where it was allocated, sizes and streams.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "recordings/snapshot/stack_groups.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

// Where the memory of a program was at its peak, read off the history of its allocator.

/// What one device held when its active memory, counted as requested, was highest for the first time. Memory
/// counts from its allocation until its free is completed. Every share list adds up to `requested`, and
/// `requested` + `rest` to `reserved`.
struct PeakAttribution {
  int device = 0;
  bool from_history = false;  ///< false: no history, so the memory at the time of the snapshot
  std::size_t entry = 0;      ///< the entry after which it was so; if 0, before the first one
  std::int64_t time_us = 0;
  Bytes requested = 0;
  Bytes before_recording = 0;  ///< of that: in use before the first entry
  Bytes reserved = 0;
  Bytes rest = 0;                        ///< reserved beyond it: rounding, unsplit tails, cached blocks
  std::vector<PeakShare> by_group;       ///< by where it was allocated; largest first
  FoldedStacks folded;                   ///< where the grouping asks for it
  std::vector<PeakShare> by_size_class;  ///< powers of two, smallest first
  std::vector<PeakShare> by_stream;      ///< by handle
};

/// Blocks that were live before the history began count from its beginning; of those freed within it and of
/// those still live at its end the size is known (R11.12).
PeakAttribution attribute_peak(const TorchSnapshot& snapshot, int device, const Grouping& grouping = {});

/// The devices that the snapshot says anything of, in ascending order.
std::vector<int> devices_of(const TorchSnapshot& snapshot);

}  // namespace vramlab
