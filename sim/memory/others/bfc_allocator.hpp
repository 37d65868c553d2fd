// The allocator of TensorFlow, XLA and JAX: best fit with coalescing (section 12.2).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/others/live_blocks.hpp"

namespace vramlab {

/// Every chunk is a multiple of this, and so is every address in a region.
inline constexpr Bytes kBfcUnit = 256;
inline constexpr std::size_t kBfcBins = 21;

constexpr Bytes bfc_rounded(Bytes size) { return round_up(size, kBfcUnit); }

/// Bin of a free chunk: bin k holds [256·2^k, 256·2^(k+1)), the last one everything from 256 MiB on.
constexpr std::size_t bfc_bin_of(Bytes size) {
  const auto log2 = static_cast<std::size_t>(std::bit_width(std::max(size, kBfcUnit)) - 1);
  return std::min(kBfcBins - 1, log2 - 8);
}

/// What is asked for after the device refused `size`: nine tenths of it. The product is one of 32-bit floats,
/// which shows in the last digits, and is rounded up to 256; from 2,304 bytes down it shrinks no more.
constexpr Bytes bfc_backed_off(Bytes size) {
  return bfc_rounded(static_cast<Bytes>(static_cast<float>(size) * 0.9F));
}

struct BfcOptions {
  /// Most bytes of all regions together.
  Bytes limit = 0;
  /// Regions grow from 2 MiB by doubling; otherwise the first one is as large as the limit.
  bool allow_growth = true;
  /// Entirely free regions may go back to the device when nothing else helps.
  bool garbage_collection = false;
  /// A chunk is cut if at least this share of the limit remains of it; 0 = if at least 128 MiB remain.
  double fragmentation_fraction = 0;
};

/// What JAX does unless told otherwise: one region of three quarters of the device.
BfcOptions jax_options(Bytes device_total);

/// What the allocator itself reports, in bytes and numbers of allocations.
struct BfcStats {
  std::int64_t num_allocs = 0;  ///< since the beginning
  Bytes bytes_in_use = 0;       ///< sizes of the chunks handed out
  Bytes peak_bytes_in_use = 0;
  Bytes largest_alloc_size = 0;  ///< largest chunk ever handed out
  Bytes bytes_limit = 0;
  Bytes pool_bytes = 0;  ///< sizes of the regions
  Bytes peak_pool_bytes = 0;
  Bytes largest_free_chunk = 0;

  friend bool operator==(const BfcStats&, const BfcStats&) = default;
};

/// A read-only copy of one chunk.
struct BfcChunkView {
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;  ///< 0 while it is free
  bool in_use = false;

  friend auto operator<=>(const BfcChunkView&, const BfcChunkView&) = default;
};

/// A read-only copy of one region with its chunks in address order.
struct BfcRegionView {
  Address base = 0;
  Bytes size = 0;
  std::vector<BfcChunkView> chunks;
};

/// A BFC allocator over a source of segments; each region is one segment. Streams are not told apart.
///
/// Written from a description of the rules; no recording of the original has been replayed. `stats()` has, in
/// the class `all`: allocated and active bytes = bytes_in_use, requested bytes, reserved bytes = pool_bytes,
/// segments = regions, and counts failures in num_ooms.
///
/// Left out: alignments above 256, merging of adjacent regions, free timestamps, and the wait of up to 10 s
/// for another thread to free something, since a program here is one thread.
class BfcAllocator : public PlainAllocator {
 public:
  /// `source` must outlive the allocator.
  BfcAllocator(SegmentSource& source, const BfcOptions& options);

  AllocationResult allocate(Bytes size, StreamId stream) override;
  void free(BlockId block) override;
  /// The original has no such call. Here it gives all entirely free regions back, as garbage collection does.
  void empty_cache() override { release_unused_regions(); }

  [[nodiscard]] BfcStats bfc_stats() const;
  /// 1 − largest free chunk / all free bytes of the regions; 0 if nothing is free.
  [[nodiscard]] double fragmentation() const;

  /// All regions in address order.
  [[nodiscard]] std::vector<BfcRegionView> regions() const;
  /// The free chunks of one bin (below kBfcBins) by size, then address: the order they are tried in.
  [[nodiscard]] std::vector<BfcChunkView> bin(std::size_t index) const;

 private:
  struct Chunk : BfcChunkView {
    BlockIndex previous = kNoBlock;
    BlockIndex next = kNoBlock;
    bool live = false;
  };
  struct Region {
    Bytes size = 0;
    BlockIndex first = kNoBlock;  ///< its lowest chunk; the same one for the region's whole life
  };
  struct FreeChunk {
    Bytes size = 0;
    Address address = 0;
    BlockIndex index = kNoBlock;
    friend auto operator<=>(const FreeChunk&, const FreeChunk&) = default;
  };

  [[nodiscard]] BlockIndex search(Bytes rounded) const;
  bool extend(Bytes rounded);
  void add_region(Address base, Bytes size);
  bool collect_garbage(Bytes rounded);
  [[nodiscard]] bool is_unused(const Region& region) const;
  void release_unused_regions();

  Allocation hand_out(BlockIndex index, Bytes size, Bytes rounded);
  void cut(BlockIndex index, Bytes size);
  [[nodiscard]] BlockIndex free_neighbour(BlockIndex neighbour) const;
  void absorb_next(BlockIndex index);
  BlockIndex new_chunk(Address address, Bytes size);
  void insert_in_bin(BlockIndex index);
  void remove_from_bin(BlockIndex index);

  [[nodiscard]] Bytes pool_bytes() const { return total_of(stats_.reserved_bytes); }
  [[nodiscard]] Bytes largest_free() const;
  OutOfMemory report_oom(Bytes size);

  BfcOptions options_;
  Bytes smallest_remainder_;  ///< what makes a cut worth while
  Bytes region_size_;         ///< of the next region
  std::vector<Chunk> chunks_;
  std::vector<BlockIndex> unused_;  ///< entries of `chunks_`
  std::map<Address, Region> regions_;
  std::array<std::set<FreeChunk>, kBfcBins> bins_;
  Bytes largest_alloc_size_ = 0;
};

}  // namespace vramlab
