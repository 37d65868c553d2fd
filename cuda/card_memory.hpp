// Uses the memory of every live block, so that no allocation on the card is a fiction.
#pragma once

#include <map>
#include <vector>

#include "cuda/kernels.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {

/// Writes every byte of a block when it is allocated, and reads and compares every byte before it is freed,
/// on the block's stream; on every stream it is recorded for it is read as well, after the writing. Two
/// blocks that share a byte, or memory that is not there, are found.
class CardMemory : public BlockUser {
 public:
  /// The card must be open.
  CardMemory();
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;
  ~CardMemory() override;

  void allocated(BlockId block, Address address, Bytes size, StreamId stream) override;
  void stream_recorded(BlockId block, StreamId stream) override;
  void freeing(BlockId block) override;
  void wait_for(BlockId block) override;
  void wait_for_all() override;

  /// Freed blocks whose other streams have finished since the last call. Does not wait.
  std::vector<BlockId> take_finished();

  /// The CUDA stream that stands for `stream`; made at its first use, with a first kernel on it, so that what
  /// the driver takes for a stream is taken now.
  cudaStream_t stream(StreamId stream);

  /// Reads and compares every block that is live, as freeing them would.
  void read_live();

  /// Waits for everything queued. Throws InternalError if a byte did not hold what was written to it.
  void require_intact();

  /// Bytes that were read and compared up to the last require_intact().
  [[nodiscard]] Bytes checked_bytes() const { return checked_bytes_; }

 private:
  struct Use {
    Address address = 0;
    Bytes size = 0;
    StreamId stream = 0;
    std::uint64_t seed = 0;
    std::vector<StreamId> others;  ///< that it was recorded for
  };
  void verify(const Use& use, cudaStream_t stream);
  void forget_events(BlockId block);

  MemoryFaults* faults_ = nullptr;  ///< on the card
  std::map<StreamId, cudaStream_t> streams_;
  std::map<BlockId, Use> live_;
  std::map<BlockId, std::vector<cudaEvent_t>> waiting_;  ///< freed, other streams may still read
  std::uint64_t seed_ = 0;
  Bytes checked_bytes_ = 0;
};

/// The caching allocator as a program on a real card sees it: passes everything on to a CachingAllocator and
/// lets a CardMemory use every block. Deferred frees complete when the events of the other streams have
/// passed on the card.
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
