// The kernels, as functions that queue them. Compiled by nvcc apart from everything else.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace vramlab {

/// What the checks found; lives on the device.
struct MemoryFaults {
  unsigned long long wrong_words = 0;    ///< 8-byte words that did not hold what was written
  unsigned long long first_address = 0;  ///< of one of them
  unsigned long long checked_bytes = 0;  ///< that were read and compared
};

/// Writes every byte of [address, address + bytes) with a pattern of `seed`. Both must be multiples of 16.
cudaError_t queue_fill(cudaStream_t stream, std::uint64_t address, std::uint64_t bytes, std::uint64_t seed);

/// Reads every byte and counts in `faults` what is not the pattern of `seed`.
cudaError_t queue_verify(cudaStream_t stream, std::uint64_t address, std::uint64_t bytes, std::uint64_t seed,
                         MemoryFaults* faults);

/// Keeps one multiprocessor busy for `nanoseconds`.
cudaError_t queue_compute(cudaStream_t stream, std::uint64_t nanoseconds);

}  // namespace vramlab
