#include "cuda/card.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

#include <dlfcn.h>

#include "cuda/kernels.hpp"

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

std::string describe(const std::string& name, const std::string& text, const CudaCall& call) {
  std::string_view file = call.file;  // as the compiler was given it, often absolute
  if (const auto folder = file.rfind("cuda/"); folder != std::string_view::npos) file.remove_prefix(folder);
  return std::string{file} + ":" + std::to_string(call.line) + ": " + call.text + " failed: " + name + " (" +
         text + "). " + advice(name);
}

std::string describe(cudaError_t error, const CudaCall& call) {
  return describe(cudaGetErrorName(error), cudaGetErrorString(error), call);
}

std::string describe(CUresult error, const CudaCall& call) {
  const char* text = nullptr;
  const char* symbol = nullptr;
  const Driver& driver = cuda_driver();
  if (driver.error_name(error, &symbol) != CUDA_SUCCESS) symbol = "unknown CUresult";
  if (driver.error_string(error, &text) != CUDA_SUCCESS) text = "no description";
  return describe(symbol, text, call);
}

constexpr unsigned kOldestDriver = 12000;  // CUDA 12.0; the calls are as old as 10.2

template <class Function>
void look_up(const char* name, Function*& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  VRAMLAB_CUDA(cudaGetDriverEntryPointByVersion(name, &found, kOldestDriver, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess || found == nullptr) {
    throw InputError("", std::string{"the CUDA driver has no "} + name +
                             ", which virtual memory needs; install a newer driver.");
  }
  function = reinterpret_cast<Function*>(found);
}

Driver look_up_all() {
  Driver driver;
  look_up("cuMemAddressReserve", driver.address_reserve);
  look_up("cuMemAddressFree", driver.address_free);
  look_up("cuMemCreate", driver.create);
  look_up("cuMemRelease", driver.release);
  look_up("cuMemMap", driver.map);
  look_up("cuMemUnmap", driver.unmap);
  look_up("cuMemSetAccess", driver.set_access);
  look_up("cuMemGetAllocationGranularity", driver.granularity);
  look_up("cuGetErrorName", driver.error_name);
  look_up("cuGetErrorString", driver.error_string);
  return driver;
}

// From NVIDIA's documentation of NVML: 0 is success; the first version of the memory structure.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

class Library {
 public:
  Library() : handle_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    const auto init = function<int()>("nvmlInit_v2");
    ready_ = init != nullptr && init() == 0;
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_ == nullptr) return;
    const auto shutdown = function<int()>("nvmlShutdown");
    if (ready_ && shutdown != nullptr) shutdown();
    dlclose(handle_);
  }

  [[nodiscard]] bool ready() const { return ready_; }

  template <class Signature>
  [[nodiscard]] Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
  bool ready_ = false;
};

constexpr Bytes kIdleCard = 16_MiB;  // an idle H100 has 3.25 MiB in use; a context is some hundred

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Each kernel once, on as little memory as possible: the driver loads code at the first launch.
void load_kernels() {
  void* scratch = nullptr;
  MemoryFaults* faults = nullptr;
  VRAMLAB_CUDA(cudaMalloc(&scratch, 512));
  VRAMLAB_CUDA(cudaMalloc(reinterpret_cast<void**>(&faults), sizeof(MemoryFaults)));
  VRAMLAB_CUDA(cudaMemset(faults, 0, sizeof(MemoryFaults)));
  const auto address = reinterpret_cast<std::uint64_t>(scratch);
  VRAMLAB_CUDA(queue_fill(nullptr, address, 512, 1));
  VRAMLAB_CUDA(queue_verify(nullptr, address, 512, 1, faults));
  VRAMLAB_CUDA(queue_compute(nullptr, 1));
  VRAMLAB_CUDA(cudaDeviceSynchronize());
  VRAMLAB_CUDA(cudaFree(faults));
  VRAMLAB_CUDA(cudaFree(scratch));
}

void measure_context(CardInfo& info, const std::optional<NvmlReading>& before,
                     const std::optional<NvmlReading>& after) {
  info.context = info.total - info.free;
  info.context_source = "all that is not free; others may hold a part";
  if (!before || !after) return;
  info.driver = after->driver;
  // NVML counts what the driver keeps for itself, CUDA does not know of it.
  const Bytes drivers_own = before->total - std::min(before->total, info.total);
  const bool alone = before->used < drivers_own + kIdleCard;
  info.context_source = alone ? "all that is not free on an idle card" : "growth of NVML's figure";
  if (!alone && after->used > before->used) info.context = after->used - before->used;
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

const Driver& cuda_driver() {
  static const Driver driver = look_up_all();
  return driver;
}

std::optional<NvmlReading> read_nvml(const std::string& pci_address) {
  const Library library;
  if (!library.ready()) return std::nullopt;
  const auto find = library.function<int(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
  const auto memory_of = library.function<int(NvmlDevice, NvmlMemory*)>("nvmlDeviceGetMemoryInfo");
  const auto version = library.function<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (find == nullptr || memory_of == nullptr || version == nullptr) return std::nullopt;

  NvmlDevice device = nullptr;
  NvmlMemory memory;
  std::array<char, 96> text{};
  if (find(pci_address.c_str(), &device) != 0 || memory_of(device, &memory) != 0 ||
      version(text.data(), static_cast<unsigned>(text.size())) != 0) {
    return std::nullopt;
  }
  return NvmlReading{text.data(), memory.total, memory.used};
}

std::size_t visible_cards() noexcept {
  int count = 0;
  const bool counted = cudaGetDeviceCount(&count) == cudaSuccess;
  static_cast<void>(cudaGetLastError());  // or the next call would be blamed for it
  return counted && count > 0 ? static_cast<std::size_t>(count) : 0;
}

void use_card(int device) { VRAMLAB_CUDA(cudaSetDevice(device)); }

CardInfo open_card(int device) {
  int count = 0;
  VRAMLAB_CUDA(cudaGetDeviceCount(&count));
  std::array<char, 32> pci{};
  VRAMLAB_CUDA(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), device));
  const auto before = read_nvml(pci.data());

  use_card(device);
  load_kernels();
  CardInfo info;
  cudaDeviceProp properties{};
  VRAMLAB_CUDA(cudaGetDeviceProperties(&properties, device));
  info.name = properties.name;
  const auto [free, total] = card_memory_info();
  info.free = free;
  info.total = total;

  int version = 0;
  VRAMLAB_CUDA(cudaRuntimeGetVersion(&version));
  info.runtime = version_text(version);
  VRAMLAB_CUDA(cudaDriverGetVersion(&version));
  info.driver = "CUDA " + version_text(version);
  measure_context(info, before, read_nvml(pci.data()));
  return info;
}

CardMemoryInfo card_memory_info() {
  CardMemoryInfo info;
  VRAMLAB_CUDA(cudaMemGetInfo(&info.free, &info.total));
  return info;
}

}  // namespace vramlab
