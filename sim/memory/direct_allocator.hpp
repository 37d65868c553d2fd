// No cache at all: PYTORCH_NO_CUDA_MEMORY_CACHING=1, every allocation its own cudaMalloc (R7.7).
#pragma once

#include <map>
#include <optional>

#include "sim/memory/address_heap.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/live_blocks.hpp"
#include "sim/memory/segment_source.hpp"

namespace vramlab {

/// What the driver alone would do with a program's allocations.
///
/// PyTorch's own counters stay 0 in this mode. Here `stats()` counts what is taken, in the class `all` only,
/// so that this allocator can be compared with others: allocated, active and requested bytes are the bytes
/// asked for, unrounded; reserved bytes are the physical pages behind them, what the device has less;
/// every allocation is a segment. A memory-fraction limit has no effect, as it belongs to the cache (R9.1).
///
/// Approximate: requests of at most 1 MiB share pages of 2 MiB. That small requests share is measured
/// (R10.1, with 300 KiB); up to which size, and which of several pages is taken, is assumed. The source sees
/// pages, so its driver time leaves out the calls that a shared page served.
class DirectAllocator : public Allocator {
 public:
  /// `source` must outlive the allocator.
  explicit DirectAllocator(SegmentSource& source) : source_(source) {}
  DirectAllocator(const DirectAllocator&) = delete;
  DirectAllocator& operator=(const DirectAllocator&) = delete;

  /// cudaMalloc(size).
  AllocationResult allocate(Bytes size, StreamId stream) override;
  /// cudaFree at once; it waits for the device, so no stream can still use the memory.
  void free(BlockId block) override;
  /// Nothing is cached.
  void empty_cache() override {}
  void reset_peak_stats() override;
  [[nodiscard]] const MemoryStats& stats() const override { return stats_; }

 private:
  struct Record {
    Address address = 0;
    Bytes requested = 0;
  };

  std::optional<Address> place(Bytes size);
  std::optional<Address> place_in_shared_page(Bytes size);
  std::optional<Address> reserve(Bytes size);
  void release(Address base, Bytes size);
  [[nodiscard]] OutOfMemory report_oom(Bytes size) const;

  SegmentSource& source_;
  std::map<Address, AddressHeap> shared_pages_;  ///< by base
  LiveBlocks<Record> live_;
  MemoryStats stats_;
};

}  // namespace vramlab
