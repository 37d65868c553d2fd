// Every CUDA call is checked here: a failure names the call, where it stands, the driver's reason, and what
// to do about it.
#pragma once

#include <source_location>
#include <string>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "sim/core/error.hpp"

namespace vramlab {

/// Throws InputError unless `error` is cudaSuccess; `call` is the call's text.
void check_cuda(cudaError_t error, const char* call,
                const std::source_location& where = std::source_location::current());

/// The same for the driver's interface.
void check_cuda(CUresult error, const char* call,
                const std::source_location& where = std::source_location::current());

/// As check_cuda, but never throws: for destructors. Prints to standard error.
void report_cuda(cudaError_t error, const char* call,
                 const std::source_location& where = std::source_location::current()) noexcept;
void report_cuda(CUresult error, const char* call,
                 const std::source_location& where = std::source_location::current()) noexcept;

/// "cuda/card.cpp:31: cudaSetDevice(0) failed: cudaErrorNoDevice (no CUDA-capable device is detected). …"
std::string describe_cuda_failure(const char* call, const std::source_location& where,
                                  const std::string& name, const std::string& text);

}  // namespace vramlab

/// Performs a call and throws if it fails.
#define VRAMLAB_CUDA(call) ::vramlab::check_cuda((call), #call)
/// Performs a call and reports if it fails.
#define VRAMLAB_CUDA_NOTHROW(call) ::vramlab::report_cuda((call), #call)
