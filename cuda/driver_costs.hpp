// What the driver's memory calls cost on the card of this machine, by size.
#pragma once

#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// Medians of several calls at one size.
struct DriverCost {
  Bytes size = 0;
  SimTime malloc{0};      ///< cudaMalloc
  SimTime free{0};        ///< cudaFree
  Bytes device_used = 0;  ///< what the card had less after the cudaMalloc
};

/// The same for one physical page of that size in a reserved range.
struct MappingCost {
  Bytes size = 0;
  SimTime create{0};  ///< cuMemCreate
  SimTime map{0};     ///< cuMemMap and cuMemSetAccess
  SimTime unmap{0};   ///< cuMemUnmap and cuMemRelease
};

/// Measures sizes from 512 bytes to 16 GiB, as far as half of what is free allows. The card must be open.
std::vector<DriverCost> measure_driver_costs();

/// Measures pages of 2, 20 and 200 MiB.
std::vector<MappingCost> measure_mapping_costs();

}  // namespace vramlab
