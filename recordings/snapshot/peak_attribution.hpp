// Who held the memory at a peak: by frames of the program, sizes and pools.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// Blocks that have something in common.
struct PeakShare {
  std::string name;                  ///< "resnet.py:151 forward", "1 to 10 MiB", "stream 0, default pools"
  std::vector<std::string> callers;  ///< of a frame: the next user frames outwards
  Bytes bytes = 0;
  std::uint64_t blocks = 0;
};

// What of a recorded stack says something to the person who wrote the program.

/// Stands for a stack without frames.
inline constexpr const char* kNoStack = "(no stack recorded, such as in backward)";

/// The frames of one stack (places in `frames`, innermost first) that the reader wrote; those of Python
/// libraries if there are no others; else what the native frames say. Never empty.
std::vector<std::string> shown_frames(std::span<const StackFrame> frames,
                                      std::span<const std::uint32_t> stack);

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
  Bytes reserved = 0;
  Bytes rest = 0;                   ///< reserved beyond it: rounding, unsplit tails, cached blocks
  std::vector<PeakShare> by_frame;  ///< innermost frame that the reader wrote (shown_frames); largest first
  std::vector<PeakShare> by_size_class;  ///< powers of two, smallest first
  std::vector<PeakShare> by_stream;      ///< by handle
};

/// Blocks that were live before the history began count from its beginning; of those freed within it and of
/// those still live at its end the size is known (R11.12).
PeakAttribution attribute_peak(const TorchSnapshot& snapshot, int device);

/// The devices that the snapshot says anything of, in ascending order.
std::vector<int> devices_of(const TorchSnapshot& snapshot);

}  // namespace vramlab
