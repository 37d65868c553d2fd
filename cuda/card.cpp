#include "cuda/card.hpp"

#include <algorithm>
#include <array>

#include "cuda/check.hpp"
#include "cuda/kernels.hpp"
#include "cuda/nvml.hpp"

namespace vramlab {
namespace {

constexpr Bytes kIdleCard = 16_MiB;  // an idle H100 has 3.25 MiB in use; a context is some hundred
constexpr int kDevice = 0;           // of the visible ones: CUDA_VISIBLE_DEVICES chooses

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

CardInfo open_card() {
  int count = 0;
  VRAMLAB_CUDA(cudaGetDeviceCount(&count));
  std::array<char, 32> pci{};
  VRAMLAB_CUDA(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), kDevice));
  const auto before = read_nvml(pci.data());

  VRAMLAB_CUDA(cudaSetDevice(kDevice));
  load_kernels();
  CardInfo info;
  cudaDeviceProp properties{};
  VRAMLAB_CUDA(cudaGetDeviceProperties(&properties, kDevice));
  info.name = properties.name;
  std::size_t free = 0;
  std::size_t total = 0;
  VRAMLAB_CUDA(cudaMemGetInfo(&free, &total));
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

Bytes card_free() {
  std::size_t free = 0;
  std::size_t total = 0;
  VRAMLAB_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

}  // namespace vramlab
