#include "cuda/check.hpp"

#include <cstdio>
#include <string_view>

#include "cuda/driver.hpp"

namespace vramlab {
namespace {

// By name: the two interfaces name the same failure alike but for the prefix.
std::string advice(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("NoDevice") || has("NO_DEVICE")) {
    return "This machine has no CUDA card, or CUDA_VISIBLE_DEVICES hides it; leave --device out to simulate.";
  }
  if (has("InsufficientDriver") || has("SystemDriverMismatch")) {
    return "The driver is older than the CUDA toolkit of this build, or there is none; install a newer "
           "driver.";
  }
  if (has("MemoryAllocation") || has("OUT_OF_MEMORY")) {
    return "Free memory of the card (nvidia-smi shows who holds it), or take a smaller limit.";
  }
  if (has("IllegalAddress") || has("ILLEGAL_ADDRESS") || has("InvalidValue") || has("INVALID_VALUE")) {
    return "This is a fault of vramlab; run the same command under compute-sanitizer and report what it "
           "says.";
  }
  if (has("DevicesUnavailable") || has("DEVICE_UNAVAILABLE")) {
    return "Another process has the card for itself (compute mode); wait for it, or take another card.";
  }
  return "nvidia-smi shows the state of the card; the system log may say more.";
}

std::string reason(cudaError_t error, std::string& name) {
  name = cudaGetErrorName(error);
  return cudaGetErrorString(error);
}

std::string reason(CUresult error, std::string& name) {
  const char* text = nullptr;
  const char* symbol = nullptr;
  const Driver& driver = cuda_driver();
  if (driver.error_name(error, &symbol) != CUDA_SUCCESS) symbol = "unknown CUresult";
  if (driver.error_string(error, &text) != CUDA_SUCCESS) text = "no description";
  name = symbol;
  return text;
}

template <class Error>
std::string describe(Error error, const CudaCall& call) {
  std::string name;
  const std::string text = reason(error, name);
  std::string_view file = call.file;  // as the compiler was given it, often absolute
  if (const auto folder = file.rfind("cuda/"); folder != std::string_view::npos) file.remove_prefix(folder);
  return std::string{file} + ":" + std::to_string(call.line) + ": " + call.text + " failed: " + name + " (" +
         text + "). " + advice(name);
}

}  // namespace

void check_cuda(cudaError_t error, const CudaCall& call) {
  if (error != cudaSuccess) throw InputError("", describe(error, call));
}

void check_cuda(CUresult error, const CudaCall& call) {
  if (error != CUDA_SUCCESS) throw InputError("", describe(error, call));
}

void report_cuda(cudaError_t error, const CudaCall& call) noexcept {
  if (error != cudaSuccess) std::fprintf(stderr, "%s\n", describe(error, call).c_str());
}

void report_cuda(CUresult error, const CudaCall& call) noexcept {
  if (error != CUDA_SUCCESS) std::fprintf(stderr, "%s\n", describe(error, call).c_str());
}

}  // namespace vramlab
