#include "cuda/driver.hpp"

#include "cuda/check.hpp"

namespace vramlab {
namespace {

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

}  // namespace

const Driver& cuda_driver() {
  static const Driver driver = look_up_all();
  return driver;
}

}  // namespace vramlab
