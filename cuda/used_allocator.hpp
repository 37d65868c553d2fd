// The caching allocator as a program on a real card sees it: every block it hands out is used.
#pragma once

#include "cuda/card_memory.hpp"
#include "sim/memory/caching_allocator.hpp"

namespace vramlab {

/// Passes everything on to a CachingAllocator and lets a CardMemory use the blocks. Deferred frees complete
/// when the events of the other streams have passed on the card.
class UsedAllocator : public Allocator {
 public:
  /// Both must outlive this.
  UsedAllocator(CachingAllocator& allocator, CardMemory& memory) : allocator_(allocator), memory_(memory) {}

  AllocationResult allocate(Bytes size, StreamId stream) override;
  void free(BlockId block) override;
  void empty_cache() override;
  void reset_peak_stats() override { allocator_.reset_peak_stats(); }
  [[nodiscard]] const MemoryStats& stats() const override { return allocator_.stats(); }

  /// tensor.record_stream()
  void record_stream(BlockId block, StreamId stream);

 private:
  void wait_after_release();

  CachingAllocator& allocator_;
  CardMemory& memory_;
  std::int64_t syncs_seen_ = 0;
};

}  // namespace vramlab
