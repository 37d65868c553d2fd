// What the failures of a recording say about the memory it had.
#pragma once

#include <optional>

#include "trace/torch_snapshot.hpp"

namespace vramlab {

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
