// What the allocators besides the caching one share: their counters, and live allocations.
#pragma once

#include <optional>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/blocks.hpp"
#include "sim/memory/segments/segment_source.hpp"

namespace vramlab {

/// An allocator that knows no small and large pools: of its counters only the class `all` moves.
class PlainAllocator : public Allocator {
 public:
  /// `source` must outlive the allocator.
  explicit PlainAllocator(SegmentSource& source) : source_(source) {}
  PlainAllocator(const PlainAllocator&) = delete;
  PlainAllocator& operator=(const PlainAllocator&) = delete;

  void reset_peak_stats() override { stats_.reset_peaks(); }
  [[nodiscard]] const MemoryStats& stats() const override { return stats_; }

 protected:
  /// Counts one more allocation, or one less: `size` bytes handed out for `requested` asked for.
  void count_allocation(Bytes size, Bytes requested);
  void count_free(Bytes size, Bytes requested);

  /// What can be said of a request that is refused.
  [[nodiscard]] OutOfMemory out_of_memory(Bytes size) const;

  SegmentSource& source_;
  MemoryStats stats_;
};

/// A live allocation of an allocator that keeps no blocks of its own.
struct LiveBlock {
  Address address = 0;
  Bytes requested = 0;
};

/// All of them by BlockId. Ids are dense: the one freed last is given next.
class LiveBlocks {
 public:
  BlockId add(const LiveBlock& block);

  /// Ends an allocation and returns it. Throws InternalError for a block that is not live.
  LiveBlock remove(BlockId block);

 private:
  std::vector<std::optional<LiveBlock>> blocks_;
  std::vector<BlockIndex> unused_;
};

}  // namespace vramlab
