// The cards a scenario can name, and how much memory they have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace vramlab {

/// Where a card's figures come from.
enum class GpuFigures : std::uint8_t {
  measured,  ///< read from a card with cudaMemGetInfo
  nominal,   ///< the size on the box, in GiB; a real card offers a little less (an H100 of "80 GB" 79.2 GiB)
};

/// One card.
struct Gpu {
  std::string_view id;    ///< as scenarios write it: "rtx-3060-12gb"
  std::string_view name;  ///< as the maker writes it
  Bytes total = 0;        ///< memory of the device as cudaMemGetInfo reports it
  Bytes context = 0;      ///< taken by the bare CUDA context of one process
  GpuFigures figures = GpuFigures::nominal;
};

/// All known cards, in the order of their ids.
std::span<const Gpu> gpu_catalogue();

/// The card called `id`. Throws InputError with the nearest names if there is none; `where` says where the
/// name was read.
const Gpu& find_gpu(std::string_view id, const std::string& where = {});

}  // namespace vramlab
