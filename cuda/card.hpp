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
  /// What opening the context took: what is not free now, less what NVML counted as used before. Without NVML
  /// that is right only if nobody else holds memory of the card.
  Bytes context = 0;
  bool context_from_nvml = false;
};

/// Opens the first visible card and loads the kernels, so that no later call takes memory of its own.
/// Throws InputError, saying what to do, where there is no card or no driver.
CardInfo open_card();

/// Free memory of the whole card now, by cudaMemGetInfo.
Bytes card_free();

}  // namespace vramlab
