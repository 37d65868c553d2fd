#include "models/gpu_catalogue.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"

namespace vramlab {
namespace {

// The context was measured on the H100 alone. It depends on the number of multiprocessors and on the driver;
// for the other cards the same figure stands in, and is as nominal as their totals.
constexpr Bytes kContext = 552'402'944;

constexpr Gpu nominal(std::string_view id, std::string_view name, Bytes total) {
  return {id, name, total, kContext, GpuFigures::nominal};
}

constexpr std::array kCatalogue{
    nominal("a10-24gb", "NVIDIA A10", 24_GiB),
    nominal("a100-40gb", "NVIDIA A100 40GB", 40_GiB),
    nominal("a100-80gb", "NVIDIA A100 80GB", 80_GiB),
    nominal("a10g-24gb", "NVIDIA A10G", 24_GiB),
    Gpu{"h100-80gb", "NVIDIA H100 80GB HBM3", 85'017'493'504, kContext, GpuFigures::measured},
    nominal("h200-141gb", "NVIDIA H200", 141_GiB),
    nominal("l4-24gb", "NVIDIA L4", 24_GiB),
    nominal("l40s-48gb", "NVIDIA L40S", 48_GiB),
    nominal("rtx-3060-12gb", "NVIDIA GeForce RTX 3060", 12_GiB),
    nominal("rtx-3080-10gb", "NVIDIA GeForce RTX 3080", 10_GiB),
    nominal("rtx-3090-24gb", "NVIDIA GeForce RTX 3090", 24_GiB),
    nominal("rtx-4070-12gb", "NVIDIA GeForce RTX 4070", 12_GiB),
    nominal("rtx-4080-16gb", "NVIDIA GeForce RTX 4080", 16_GiB),
    nominal("rtx-4090-24gb", "NVIDIA GeForce RTX 4090", 24_GiB),
    nominal("rtx-5090-32gb", "NVIDIA GeForce RTX 5090", 32_GiB),
    nominal("t4-16gb", "NVIDIA T4", 16_GiB),
    nominal("v100-16gb", "NVIDIA V100 16GB", 16_GiB),
    nominal("v100-32gb", "NVIDIA V100 32GB", 32_GiB),
};

}  // namespace

std::span<const Gpu> gpu_catalogue() { return kCatalogue; }

const Gpu& find_gpu(std::string_view id, const std::string& where) {
  const auto* gpu =
      std::find_if(kCatalogue.begin(), kCatalogue.end(), [&](const Gpu& g) { return g.id == id; });
  if (gpu != kCatalogue.end()) return *gpu;
  std::vector<std::string> ids;
  for (const Gpu& known : kCatalogue) ids.emplace_back(known.id);
  throw InputError(where, '"' + std::string(id) + "\" is not a known card." + suggest_name(id, ids));
}

}  // namespace vramlab
