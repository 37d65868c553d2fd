// Chunks of fixed sizes that are used again and never cut: the memory pool of a published job manager.
#pragma once

#include <map>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/others/live_blocks.hpp"

namespace vramlab {

/// A request takes the chunk of exactly its size that was given back last, or a new one from cudaMalloc.
/// Nothing is cut, nothing is joined, and chunks that nobody uses stay until the end: an idle chunk of
/// another size does not help a request that finds no room.
///
/// As published, the pool fails with an IndexError where a size is known and all its chunks are in use; here
/// it takes a new one then. `stats()` has, in the class `all`: allocated and active bytes = those asked for,
/// reserved bytes = the pages behind all chunks, segments = chunks, and counts failures in num_ooms.
class FixedPoolAllocator : public PlainAllocator {
 public:
  /// `source` must outlive the allocator.
  explicit FixedPoolAllocator(SegmentSource& source) : PlainAllocator(source), device_(source) {}

  AllocationResult allocate(Bytes size, StreamId stream) override;
  void free(BlockId block) override;
  /// The original has no such call. Here it gives every idle chunk back to the device.
  void empty_cache() override;

  /// Bytes in chunks that nobody uses.
  [[nodiscard]] Bytes idle() const;

 private:
  struct Chunk {
    Allocation place;  ///< on the device
    Bytes size = 0;
    bool in_use = false;
  };

  Allocation hand_out(BlockIndex index);
  void note_device();

  DirectAllocator device_;
  std::vector<Chunk> chunks_;
  std::vector<BlockIndex> unused_;  ///< entries of `chunks_`
  std::map<Bytes, std::vector<BlockIndex>> idle_;
};

}  // namespace vramlab
