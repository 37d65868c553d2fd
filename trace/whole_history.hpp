// Whether a device's history is whole: from an empty allocator to the final segments, without contradiction.
#pragma once

#include "trace/torch_snapshot.hpp"

namespace vramlab {

/// Bytes that the allocator of `device` had reserved before the first entry of its history, by undoing all of
/// it from the final segments (R11.12). Not 0 = the history is not whole; negative = entries are missing.
std::int64_t reserved_at_start(const TorchSnapshot& snapshot, int device);

/// Throws InputError if the device has no history.
void require_history(const TorchSnapshot& snapshot, int device);

/// Throws InputError, naming the entry where there is one, if the device has no history, if the history does
/// not start from an empty allocator, or if it acquires memory that is held already or releases memory that
/// is not.
void require_whole_history(const TorchSnapshot& snapshot, int device);

}  // namespace vramlab
