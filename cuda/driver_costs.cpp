#include "cuda/driver_costs.hpp"

#include <algorithm>
#include <chrono>

#include "cuda/card.hpp"
#include "cuda/check.hpp"
#include "cuda/cuda_segments.hpp"
#include "cuda/driver.hpp"

namespace vramlab {
namespace {

constexpr int kCalls = 15;  // of which the median counts

template <class Call>
SimTime time_of(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<SimTime>(std::chrono::steady_clock::now() - begin);
}

SimTime median(std::vector<SimTime> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

DriverCost measure(Bytes size) {
  std::vector<SimTime> mallocs;
  std::vector<SimTime> frees;
  Bytes used = 0;
  for (int i = 0; i < kCalls; ++i) {
    void* memory = nullptr;
    const Bytes before = card_free();
    mallocs.push_back(time_of([&] { VRAMLAB_CUDA(cudaMalloc(&memory, size)); }));
    used = before - card_free();
    frees.push_back(time_of([&] { VRAMLAB_CUDA(cudaFree(memory)); }));
  }
  return {size, median(mallocs), median(frees), used};
}

MappingCost measure_page(Bytes size) {
  const Driver& driver = cuda_driver();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  VRAMLAB_CUDA(cudaGetDevice(&properties.location.id));
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUdeviceptr base = 0;
  VRAMLAB_CUDA(driver.address_reserve(&base, size, 0, 0, 0));
  std::vector<SimTime> creates;
  std::vector<SimTime> maps;
  std::vector<SimTime> unmaps;
  for (int i = 0; i < kCalls; ++i) {
    CUmemGenericAllocationHandle memory{};
    creates.push_back(time_of([&] { VRAMLAB_CUDA(driver.create(&memory, size, &properties, 0)); }));
    maps.push_back(time_of([&] {
      VRAMLAB_CUDA(driver.map(base, size, 0, memory, 0));
      VRAMLAB_CUDA(driver.set_access(base, size, &access, 1));
    }));
    unmaps.push_back(time_of([&] {
      VRAMLAB_CUDA(driver.unmap(base, size));
      VRAMLAB_CUDA(driver.release(memory));
    }));
  }
  VRAMLAB_CUDA(driver.address_free(base, size));
  return {size, median(creates), median(maps), median(unmaps)};
}

}  // namespace

std::vector<DriverCost> measure_driver_costs() {
  std::vector<DriverCost> costs;
  for (const Bytes size : {Bytes{512}, 1_MiB, 2_MiB, 20_MiB, 64_MiB, 256_MiB, 1_GiB, 4_GiB, 16_GiB}) {
    if (size <= card_free() / 2) costs.push_back(measure(size));
  }
  return costs;
}

std::vector<MappingCost> measure_mapping_costs() {
  std::vector<MappingCost> costs;
  for (const Bytes size : {2_MiB, 20_MiB, 200_MiB}) {
    if (size <= card_free() / 2) costs.push_back(measure_page(size));
  }
  return costs;
}

}  // namespace vramlab
