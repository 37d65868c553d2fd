#include <algorithm>

#include "cuda/kernels.hpp"

namespace vramlab {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint64_t kMostBlocks = 2048;  // enough to fill any card; each thread then takes several words

// Differs in every word and with every seed, so that a block that overlaps another is found.
__device__ unsigned long long pattern(std::uint64_t seed, std::uint64_t word) {
  unsigned long long x = (seed ^ (word * 0x9E3779B97F4A7C15ULL)) * 0xBF58476D1CE4E5B9ULL;
  return x ^ (x >> 29);
}

__global__ void fill(ulonglong2* memory, std::uint64_t pairs, std::uint64_t seed) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < pairs; i += step) {
    memory[i] = make_ulonglong2(pattern(seed, 2 * i), pattern(seed, 2 * i + 1));
  }
}

__global__ void verify(const ulonglong2* memory, std::uint64_t pairs, std::uint64_t seed,
                       MemoryFaults* faults) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  unsigned long long read = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < pairs; i += step) {
    const ulonglong2 found = memory[i];
    read += sizeof(ulonglong2);
    const unsigned wrong =
        (found.x != pattern(seed, 2 * i) ? 1U : 0U) + (found.y != pattern(seed, 2 * i + 1) ? 1U : 0U);
    if (wrong == 0) continue;
    atomicAdd(&faults->wrong_words, wrong);
    atomicExch(&faults->first_address, reinterpret_cast<unsigned long long>(memory + i));
  }
  // One addition a warp, or small blocks would wait for the counter.
  for (int offset = 16; offset > 0; offset /= 2) read += __shfl_down_sync(0xFFFFFFFFU, read, offset);
  if (threadIdx.x % 32 == 0 && read > 0) atomicAdd(&faults->checked_bytes, read);
}

__global__ void compute(std::uint64_t nanoseconds) {
  std::uint64_t begin = 0;
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

unsigned blocks_for(std::uint64_t pairs) {
  const std::uint64_t blocks = (pairs + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::min(blocks, kMostBlocks));
}

}  // namespace

cudaError_t queue_fill(cudaStream_t stream, std::uint64_t address, std::uint64_t bytes, std::uint64_t seed) {
  const std::uint64_t pairs = bytes / sizeof(ulonglong2);
  if (pairs == 0) return cudaSuccess;
  fill<<<blocks_for(pairs), kThreads, 0, stream>>>(reinterpret_cast<ulonglong2*>(address), pairs, seed);
  return cudaGetLastError();
}

cudaError_t queue_verify(cudaStream_t stream, std::uint64_t address, std::uint64_t bytes, std::uint64_t seed,
                         MemoryFaults* faults) {
  const std::uint64_t pairs = bytes / sizeof(ulonglong2);
  if (pairs == 0) return cudaSuccess;
  verify<<<blocks_for(pairs), kThreads, 0, stream>>>(reinterpret_cast<const ulonglong2*>(address), pairs,
                                                     seed, faults);
  return cudaGetLastError();
}

cudaError_t queue_compute(cudaStream_t stream, std::uint64_t nanoseconds) {
  compute<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaGetLastError();
}

}  // namespace vramlab
