#include "cuda/card_memory.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cuda/card.hpp"

namespace vramlab {
namespace {

cudaEvent_t event_on(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  VRAMLAB_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  VRAMLAB_CUDA(cudaEventRecord(event, stream));
  return event;
}

bool is_done(cudaEvent_t event) {
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady) return false;
  VRAMLAB_CUDA_RESULT(state, "cudaEventQuery(event)");
  return true;
}

}  // namespace

CardMemory::CardMemory() {
  VRAMLAB_CUDA(cudaMalloc(reinterpret_cast<void**>(&faults_), sizeof(MemoryFaults)));
  VRAMLAB_CUDA(cudaMemset(faults_, 0, sizeof(MemoryFaults)));
}

CardMemory::~CardMemory() {
  VRAMLAB_CUDA_NOTHROW(cudaDeviceSynchronize());
  for (const auto& [block, events] : waiting_) {
    for (cudaEvent_t event : events) VRAMLAB_CUDA_NOTHROW(cudaEventDestroy(event));
  }
  for (const auto& [id, stream] : streams_) VRAMLAB_CUDA_NOTHROW(cudaStreamDestroy(stream));
  VRAMLAB_CUDA_NOTHROW(cudaFree(faults_));
}

cudaStream_t CardMemory::stream(StreamId id) {
  cudaStream_t& stream = streams_[id];
  if (stream != nullptr) return stream;
  VRAMLAB_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  VRAMLAB_CUDA(queue_compute(stream, 1));
  return stream;
}

void CardMemory::allocated(BlockId block, Address address, Bytes size, StreamId id) {
  const Use use{address, size, id, ++seed_, {}};
  VRAMLAB_CUDA(queue_fill(stream(id), address, size, use.seed));
  live_.insert_or_assign(block, use);
}

void CardMemory::stream_recorded(BlockId block, StreamId id) {
  Use& use = live_.at(block);
  if (id == use.stream) return;
  cudaEvent_t written = event_on(stream(use.stream));
  VRAMLAB_CUDA(cudaStreamWaitEvent(stream(id), written));
  VRAMLAB_CUDA(cudaEventDestroy(written));  // the driver keeps it until it has passed
  verify(use, stream(id));
  if (std::find(use.others.begin(), use.others.end(), id) == use.others.end()) use.others.push_back(id);
}

void CardMemory::freeing(BlockId block) {
  const auto found = live_.find(block);
  if (found == live_.end()) throw InternalError("a block is freed that was never used");
  const Use& use = found->second;
  verify(use, stream(use.stream));
  for (const StreamId other : use.others) waiting_[block].push_back(event_on(stream(other)));
  live_.erase(found);
}

void CardMemory::wait_for(BlockId block) {
  const auto found = waiting_.find(block);
  if (found == waiting_.end()) return;
  for (cudaEvent_t event : found->second) VRAMLAB_CUDA(cudaEventSynchronize(event));
  forget_events(block);
}

void CardMemory::wait_for_all() {
  VRAMLAB_CUDA(cudaDeviceSynchronize());
  while (!waiting_.empty()) forget_events(waiting_.begin()->first);
}

std::vector<BlockId> CardMemory::take_finished() {
  std::vector<BlockId> finished;
  for (const auto& [block, events] : waiting_) {
    if (std::all_of(events.begin(), events.end(), is_done)) finished.push_back(block);
  }
  for (const BlockId block : finished) forget_events(block);
  return finished;
}

void CardMemory::forget_events(BlockId block) {
  for (cudaEvent_t event : waiting_.at(block)) VRAMLAB_CUDA(cudaEventDestroy(event));
  waiting_.erase(block);
}

void CardMemory::verify(const Use& use, cudaStream_t on) {
  VRAMLAB_CUDA(queue_verify(on, use.address, use.size, use.seed, faults_));
}

void CardMemory::read_live() {
  for (const auto& [block, use] : live_) verify(use, stream(use.stream));
}

void CardMemory::require_intact() {
  MemoryFaults faults;
  VRAMLAB_CUDA(cudaDeviceSynchronize());
  VRAMLAB_CUDA(cudaMemcpy(&faults, faults_, sizeof faults, cudaMemcpyDeviceToHost));
  checked_bytes_ = faults.checked_bytes;
  if (faults.wrong_words == 0) return;
  throw InternalError(std::to_string(faults.wrong_words) +
                      " words of the card's memory did not hold what was written to them, one of them at " +
                      std::to_string(faults.first_address) + ": two blocks overlap, or the memory is faulty");
}

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
