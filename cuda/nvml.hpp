// NVIDIA's management library, reached while the program runs: its header is not packaged, and machines
// without a driver lack it.
#pragma once

#include <optional>
#include <string>

#include "sim/core/units.hpp"

namespace vramlab {

/// What NVML knows without a CUDA context.
struct NvmlReading {
  std::string driver;  ///< version, "580.159.04"
  Bytes total = 0;     ///< of the card, what the driver keeps for itself included
  Bytes used = 0;      ///< of the card, by all processes and the driver itself, in bytes
};

/// Reads the card with that PCI address ("0000:3b:00.0"). Empty where NVML or the card is missing.
std::optional<NvmlReading> read_nvml(const std::string& pci_address);

}  // namespace vramlab
