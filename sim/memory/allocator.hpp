// The seam above every allocator: what a program asks of it, what it gets back, and who is told of it.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "core/units.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {

/// A CUDA stream by its handle; 0 is the default stream.
using StreamId = std::uint64_t;
inline constexpr StreamId kDefaultStream = 0;

/// A live allocation of one allocator. Dense: freed ids are used again.
enum class BlockId : std::uint32_t {};

/// What an allocation of 0 bytes gives: a null pointer without a block behind it (R1.1).
inline constexpr BlockId kNullBlock{0xFFFF'FFFF};

/// What a successful allocation gave.
struct Allocation {
  BlockId block{};
  Address address = 0;
};

/// What an allocator gave back to the device on the way to an OOM, in bytes, in the order of R4.
struct OomAttempts {
  Bytes collected = 0;          ///< by garbage collection (R4.3)
  Bytes oversize_released = 0;  ///< blocks of at least max_split_size (R4.6)
  Bytes cache_released = 0;     ///< everything cached that is whole (R4.8)
  bool limit_refused = false;   ///< the last try failed on the limit, not on the device
};

/// Reserved memory that nobody uses and that did not help the request, in bytes (R0.1, R0.3, R3.8).
struct IdleMemory {
  Bytes same_kind = 0;      ///< cached blocks of its pool and stream, each too small
  Bytes other_size = 0;     ///< of its stream, in the pool for the other size (up to 1 MiB, or above)
  Bytes other_streams = 0;  ///< cached for other streams
  Bytes other_pools = 0;    ///< in pools that the request may not use
  Bytes waiting = 0;        ///< freed, but other streams may still read it

  friend bool operator==(const IdleMemory&, const IdleMemory&) = default;
};

/// An allocation that could not be served: data, not an error. All figures in bytes (R4.10, R4.12).
struct OutOfMemory {
  Bytes requested = 0;  ///< what the program asked for
  Bytes rounded = 0;    ///< after size rounding; the size of the trace's `oom` entry
  Bytes segment = 0;    ///< what would have been asked of the driver ("Tried to allocate")
  Bytes device_total = 0;
  Bytes device_free = 0;
  std::optional<Bytes> limit;  ///< the memory-fraction limit, when one is set ("allowed")
  Bytes allocated = 0;
  Bytes reserved = 0;
  Bytes private_pools_idle = 0;  ///< free cached blocks of private pools ("allocated in private pools")
  Bytes largest_free_block = 0;  ///< of the pool and stream of the request
  bool advises_expandable =
      true;  ///< the message ends with the hint on expandable segments (docs/allocator-rules.md, section 15)
  OomAttempts tried;
  IdleMemory idle;
  /// throw_on_cudamalloc_oom: rejected before the driver was asked, because reserved memory would go above
  /// this, the configured memory fraction. Not counted in num_ooms, and no entry of the history.
  std::optional<Bytes> rejected_above;
  /// No expandable segment is large enough for the request: they reserve so much
  /// (expandable_segments_reserve).
  std::optional<Bytes> segment_reserve;
};

/// Either an allocation or the reason why there is none.
class AllocationResult {
 public:
  AllocationResult(Allocation allocation) : result_(allocation) {}  // NOLINT: implicit by design
  AllocationResult(OutOfMemory oom) : result_(oom) {}               // NOLINT: implicit by design

  explicit operator bool() const { return result_.index() == 0; }
  const Allocation& operator*() const { return std::get<Allocation>(result_); }
  const Allocation* operator->() const { return &std::get<Allocation>(result_); }
  [[nodiscard]] const OutOfMemory& oom() const { return std::get<OutOfMemory>(result_); }

 private:
  std::variant<Allocation, OutOfMemory> result_;
};

/// A device memory allocator as a program uses it.
class Allocator {
 public:
  virtual ~Allocator() = default;

  /// Allocates `size` bytes for work on `stream`; 0 bytes give kNullBlock and address 0, and nothing changes.
  virtual AllocationResult allocate(Bytes size, StreamId stream) = 0;

  /// Gives a live block back; kNullBlock is ignored. Throws InternalError for a block that is not live.
  virtual void free(BlockId block) = 0;

  /// torch.cuda.empty_cache(): gives what is cached and unused back to the device.
  virtual void empty_cache() = 0;

  /// torch.cuda.reset_peak_memory_stats(): every peak becomes the current value (R8.5).
  virtual void reset_peak_stats() = 0;

  [[nodiscard]] virtual const MemoryStats& stats() const = 0;
};

// What a caching allocator does, entry by entry, as PyTorch's memory history records it (R11.3).

/// One entry of the allocator's history.
struct AllocatorEvent {
  enum class Action : std::uint8_t {
    alloc,           ///< size = what was requested, not the block's size
    free_requested,  ///< size = what had been requested
    free_completed,  ///< the same; later than free_requested when other streams used the block
    segment_alloc,   ///< cudaMalloc; size of the segment
    segment_free,    ///< cudaFree
    segment_map,     ///< the range mapped in an expandable segment
    segment_unmap,   ///< the range unmapped
    oom,             ///< address = free memory of the device, size = rounded size of the request
  };

  Action action{};
  Address address = 0;
  Bytes size = 0;
  StreamId stream = 0;

  friend bool operator==(const AllocatorEvent&, const AllocatorEvent&) = default;
};

/// Receives the history while it happens.
class AllocatorListener {
 public:
  virtual ~AllocatorListener() = default;

  /// Called in the order of the history. Must not call the allocator.
  virtual void on_event(const AllocatorEvent& event) = 0;
};

// What a program does with the memory of its blocks. Nothing on a pretended card; kernels on a real one.

/// Told of everything that happens to the blocks of a CachingAllocator that does not happen inside it.
class BlockUser {
 public:
  virtual ~BlockUser() = default;

  /// `block`, `size` bytes at `address`, was allocated for work on `stream`.
  virtual void allocated(BlockId block, Address address, Bytes size, StreamId stream) = 0;

  /// `stream` uses the block as well (tensor.record_stream).
  virtual void stream_recorded(BlockId block, StreamId stream) = 0;

  /// The program is about to free the block: its last work on it is queued now.
  virtual void freeing(BlockId block) = 0;

  /// The program takes it for granted that other streams' work on a freed block is done: waits until it is.
  virtual void wait_for(BlockId block) = 0;

  /// The same for all work of the device.
  virtual void wait_for_all() = 0;
};

}  // namespace vramlab
