// Where the reserved ranges of expandable segments begin.
#pragma once

#include <vector>

#include "sim/memory/allocator_settings.hpp"
#include "trace/torch_snapshot.hpp"

namespace vramlab {

/// For each of the `segments` that a device held at the beginning of its history: the base of its reserved
/// range, or its own address if it is a plain one. No file tells a base. Taken is the lowest address that is
/// mapped at the beginning, or later on while something of the range is still mapped: a hole in front that is
/// never filled makes no difference to this history (R5.3). Runs of one stream, kind and pool share a range
/// (R5.2).
std::vector<Address> find_bases(const TorchSnapshot& snapshot, int device, const AllocatorSettings& settings,
                                const std::vector<SnapshotSegment>& segments);

}  // namespace vramlab
