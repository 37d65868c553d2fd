#include "cuda/used_allocator.hpp"

#include <utility>

namespace vramlab {

AllocationResult UsedAllocator::allocate(Bytes size, StreamId stream) {
  for (const BlockId block : memory_.take_finished()) allocator_.finish_events(block);
  const AllocationResult result = allocator_.allocate(size, stream);
  wait_after_release();
  if (result && result->block != kNullBlock) {
    memory_.allocated(result->block, result->address, allocator_.size_of(result->block), stream);
  }
  return result;
}

void UsedAllocator::free(BlockId block) {
  if (block != kNullBlock) memory_.freeing(block);
  allocator_.free(block);
}

void UsedAllocator::empty_cache() {
  allocator_.empty_cache();
  wait_after_release();
}

void UsedAllocator::record_stream(BlockId block, StreamId stream) {
  if (block != kNullBlock) memory_.stream_recorded(block, stream);
  allocator_.record_stream(block, stream);
}

// A full release takes all work for done (R4.8), so it must be before the memory is used again.
void UsedAllocator::wait_after_release() {
  const std::int64_t syncs = allocator_.stats().num_sync_all_streams;
  if (std::exchange(syncs_seen_, syncs) != syncs) memory_.wait_for_all();
}

}  // namespace vramlab
