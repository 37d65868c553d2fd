// The memory that an allocator holds, compared with the segments of a snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recordings/snapshot/torch_snapshot.hpp"
#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {

/// The outcome of a comparison. A mismatch is a segment or block that differs in anything.
struct SegmentComparison {
  struct Difference {
    std::string what;  ///< such as "state of the block at 139784000"
    std::string recorded;
    std::string simulated;
  };

  std::uint64_t segments = 0;  ///< recorded ones
  std::uint64_t blocks = 0;
  std::uint64_t segment_mismatches = 0;
  std::uint64_t block_mismatches = 0;
  std::optional<Difference> first;
};

/// Compares every segment (address, size, stream, kind, private pool, sums) and every block (address, size,
/// requested size, state) of one device. `pools` tells which recorded pool each private pool of the allocator
/// stands for. An expandable segment counts as one segment for each mapped run, as in a snapshot (R11.1).
/// Without `stale_sizes` the requested sizes of free blocks, which stem from an earlier life (R8.9), are left
/// out.
SegmentComparison compare_segments(const std::vector<SnapshotSegment>& recorded, int device,
                                   const CachingAllocator& allocator,
                                   const std::map<PoolId, SnapshotPool>& pools, bool stale_sizes = true);

/// The allocator's memory as a snapshot of `device` describes it, in address order.
std::vector<SnapshotSegment> snapshot_segments(const CachingAllocator& allocator, int device,
                                               const std::map<PoolId, SnapshotPool>& pools);

}  // namespace vramlab
