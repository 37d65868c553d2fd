// Allocators that leave all caching to the driver: cudaMalloc for every request, and backend:cudaMallocAsync.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "sim/memory/allocator.hpp"
#include "sim/memory/others/live_blocks.hpp"
#include "sim/memory/segments/address_heap.hpp"
#include "sim/memory/segments/segment_source.hpp"

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
class DirectAllocator : public PlainAllocator {
 public:
  using PlainAllocator::PlainAllocator;

  /// cudaMalloc(size).
  AllocationResult allocate(Bytes size, StreamId stream) override;
  /// cudaFree at once; it waits for the device, so no stream can still use the memory.
  void free(BlockId block) override;
  /// Nothing is cached.
  void empty_cache() override {}

 private:
  std::optional<Address> place(Bytes size);
  std::optional<Address> place_in_shared_page(Bytes size);
  std::optional<Address> reserve(Bytes size);
  void release(Address base, Bytes size);

  std::map<Address, AddressHeap> shared_pages_;  ///< by base
  SizeMap<Address> largest_holes_;               ///< of each
  LiveBlocks live_;
};

/// backend:cudaMallocAsync: PyTorch leaves rounding and caching to the driver's default memory pool.
///
/// Exact: allocated and active bytes, their peaks, and every refusal by the limit: these depend on the
/// requested sizes alone. Reserved bytes are exact given the addresses of the allocations. Approximate: the
/// addresses. The driver's choice depends on streams and is not known; here it is the lowest hole that fits,
/// which makes reserved bytes off by 6 % on average on the recording, 16 % at worst, and too low at the peak.
///
/// As in PyTorch only four counters move, in the class `all` and of these only `current` and `peak`:
/// allocated_bytes = active_bytes = the bytes asked for, and reserved_bytes. requested_bytes and num_ooms
/// stay 0. A block is free at once on all streams.
class AsyncAllocator : public PlainAllocator {
 public:
  /// Unit in which the pool gets physical memory, and in which that memory moves to other addresses.
  static constexpr Bytes kChunk = 32_MiB;
  /// Granularity of addresses inside the pool.
  static constexpr Bytes kAlignment = 512;

  /// `limit`: most bytes that may be asked for at a time, trunc(fraction · total) (R9.1); empty = no limit.
  /// `source` must outlive the allocator; the pool lies in one reserved range of it.
  explicit AsyncAllocator(SegmentSource& source, std::optional<Bytes> limit = {});

  /// Fails above the limit, or if the device has no memory left for the pool to grow; there is no retry, and
  /// nothing is released before.
  AllocationResult allocate(Bytes size, StreamId stream) override;
  void free(BlockId block) override;
  /// Trims the pool to the pieces with something in them.
  void empty_cache() override;

  /// The next allocation lies at `address`, where a recording had it, or as usual if that is not free. An
  /// allocation that fails uses it up too.
  void supply_address(Address address) { supplied_ = address; }

  [[nodiscard]] std::optional<Bytes> limit() const { return limit_; }

 private:
  [[nodiscard]] bool is_refused(Bytes size) const;
  std::optional<Address> place(Bytes size);
  void enter_pieces(Address address, Bytes size);
  void leave_pieces(Address address, Bytes size);
  bool grow_to(std::size_t chunks);
  void count(Bytes allocated);

  std::optional<Bytes> limit_;
  Address range_;
  AddressHeap heap_;
  std::optional<Address> supplied_;
  LiveBlocks live_;
  std::map<std::uint64_t, std::uint32_t> pieces_;  ///< live blocks in each 32 MiB piece that has any
  std::size_t chunks_ = 0;                         ///< physical memory of the pool, in units of kChunk
};

}  // namespace vramlab
