// The card of this process: opening it, what it says of itself, and its calls, each of them checked.
#pragma once

#include <optional>
#include <string>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "core/error.hpp"
#include "core/units.hpp"

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

/// The calls of the CUDA driver that the runtime library does not wrap. They are looked up while the program
/// runs, so that it starts on machines without a driver.
struct Driver {
  decltype(&cuMemAddressReserve) address_reserve = nullptr;
  decltype(&cuMemAddressFree) address_free = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;
};

/// Throws InputError if the driver is missing or lacks one of the calls.
const Driver& cuda_driver();

/// What NVML, NVIDIA's management library, knows without a CUDA context. It is reached while the program
/// runs: its header is not packaged, and machines without a driver lack it.
struct NvmlReading {
  std::string driver;  ///< version, "580.159.04"
  Bytes total = 0;     ///< of the card, what the driver keeps for itself included
  Bytes used = 0;      ///< of the card, by all processes and the driver itself, in bytes
};

/// Reads the card with that PCI address ("0000:3b:00.0"). Empty where NVML or the card is missing.
std::optional<NvmlReading> read_nvml(const std::string& pci_address);

/// A card as the runtime library and NVML describe it. Sizes in bytes.
struct CardInfo {
  std::string name;
  std::string driver;   ///< "580.159.04" where NVML tells it, else the CUDA version it serves, "CUDA 13.0"
  std::string runtime;  ///< version of the CUDA library of this build, "13.0"
  Bytes total = 0;      ///< cudaMemGetInfo
  Bytes free = 0;       ///< cudaMemGetInfo, with this process's context open and the kernels loaded
  /// What a process takes before its first allocation: all that is not free, where NVML says that nobody else
  /// held memory before; beside others, the growth of what NVML counts as used. Without NVML all that is not
  /// free, others included.
  Bytes context = 0;
  std::string context_source;  ///< in words, which of the three
};

/// How many cards this process may use (CUDA_VISIBLE_DEVICES chooses among those of the machine); 0 where
/// there is no driver.
std::size_t visible_cards() noexcept;

/// Opens the visible card number `device`, loads the kernels, so that no later call takes memory of its own,
/// and leaves it the current one. Throws InputError, saying what to do, where there is no such card or no
/// driver.
CardInfo open_card(int device = 0);

/// Makes an open card the current one: what follows is about it.
void use_card(int device);

/// Memory of the whole current card now, by cudaMemGetInfo.
struct CardMemoryInfo {
  std::size_t free = 0;
  std::size_t total = 0;
};
CardMemoryInfo card_memory_info();

inline Bytes card_free() { return card_memory_info().free; }

}  // namespace vramlab

/// Performs a call, or takes what an earlier one gave, and throws if it failed.
#define VRAMLAB_CUDA(call) ::vramlab::check_cuda((call), {#call, __FILE__, __LINE__})
/// Performs a call and reports if it fails.
#define VRAMLAB_CUDA_NOTHROW(call) ::vramlab::report_cuda((call), {#call, __FILE__, __LINE__})
/// The result of a call some lines above, which had an answer that is not a failure.
#define VRAMLAB_CUDA_RESULT(error, text) ::vramlab::check_cuda((error), {text, __FILE__, __LINE__})
