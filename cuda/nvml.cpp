#include "cuda/nvml.hpp"

#include <array>
#include <memory>

#include <dlfcn.h>

namespace vramlab {
namespace {

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

}  // namespace

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

}  // namespace vramlab
