// The card of this process: opening it, and what it says of itself.
#pragma once

#include <optional>
#include <string>

#include "sim/core/units.hpp"

namespace vramlab {

/// A card as the runtime library and NVML describe it. Sizes in bytes.
struct CardInfo {
  std::string name;
  std::string
      driver;  ///< e.g. "580.159.04" where NVML tells it, else the CUDA version it serves, "CUDA 13.0"
  std::string runtime;  ///< version of the CUDA library of this build, "13.0"
  Bytes total = 0;      ///< cudaMemGetInfo
  Bytes free = 0;       ///< cudaMemGetInfo, with this process's context open and the kernels loaded
  /// What a process takes before its first allocation: all that is not free, where NVML says that nobody else
  /// held memory before; beside others, the growth of what NVML counts as used. Without NVML all that is not
  /// free, others included.
  Bytes context = 0;
  std::string context_source;  ///< in words, which of the three
};

/// Opens the first visible card and loads the kernels, so that no later call takes memory of its own.
/// Throws InputError, saying what to do, where there is no card or no driver.
CardInfo open_card();

/// Free memory of the whole card now, by cudaMemGetInfo.
Bytes card_free();

}  // namespace vramlab
