// Every CUDA call is checked here: a failure names the call, where it stands, the driver's reason, and what
// to do about it.
#pragma once

#include <string>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "sim/core/error.hpp"

namespace vramlab {

/// A call of CUDA in the source.
struct CudaCall {
  const char* text;
  const char* file;
  int line;
};

/// Throws InputError unless `error` is a success.
void check_cuda(cudaError_t error, const CudaCall& call);
void check_cuda(CUresult error, const CudaCall& call);

/// The same for destructors, which must not throw: prints to standard error.
void report_cuda(cudaError_t error, const CudaCall& call) noexcept;
void report_cuda(CUresult error, const CudaCall& call) noexcept;

}  // namespace vramlab

/// Performs a call, or takes what an earlier one gave, and throws if it failed.
#define VRAMLAB_CUDA(call) ::vramlab::check_cuda((call), {#call, __FILE__, __LINE__})
/// Performs a call and reports if it fails.
#define VRAMLAB_CUDA_NOTHROW(call) ::vramlab::report_cuda((call), {#call, __FILE__, __LINE__})
/// The result of a call some lines above, which had an answer that is no failure.
#define VRAMLAB_CUDA_RESULT(error, text) ::vramlab::check_cuda((error), {text, __FILE__, __LINE__})
