// The calls of the CUDA driver that the runtime library does not wrap. They are looked up while the program
// runs, so that it starts on machines without a driver.
#pragma once

#include <cuda.h>

namespace vramlab {

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

}  // namespace vramlab
