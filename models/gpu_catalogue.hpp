// The cards a scenario can name, how much memory they have, and where that is known from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace vramlab {

/// Where a card's figures come from.
enum class GpuFigures : std::uint8_t {
  measured,  ///< total and context were read from such a card with cudaMemGetInfo
  reported,  ///< total as programs print it on such a card; the context is that of an H100, an assumption
};

/// One card, as Linux shows it. Of several totals seen it has the smallest common one, so that what fits here
/// fits there, but for three: the H100 has what was measured on one, and the A5000 and A6000 what they have
/// with ECC off. Drivers on Windows and older ones leave up to 5 % more.
struct Gpu {
  std::string_view id;      ///< as scenarios write it: "rtx-3060-12gb"
  std::string_view name;    ///< as the driver writes it
  Bytes total = 0;          ///< memory of the device as cudaMemGetInfo reports it
  Bytes rounding = 0;       ///< the total was printed with so many digits that it can be off by this much
  std::string_view seen;    ///< all totals seen, in GiB: "22.03 to 22.16"
  std::string_view source;  ///< project and issue number, or words of a log that a search for them finds
  Bytes context = 0;        ///< taken by the bare CUDA context of one process
  GpuFigures figures = GpuFigures::reported;

  [[nodiscard]] bool context_assumed() const { return figures != GpuFigures::measured; }
};

/// All known cards, in the order of their ids.
std::span<const Gpu> gpu_catalogue();

/// What a card copies to or from pinned host memory in one direction.
struct HostLink {
  double bytes_per_second = 0;
  bool measured = false;  ///< on such a card; else assumed from the generation of its PCIe, at 16 lanes
};

/// Where the card is not known (null), that of PCIe 3.
HostLink host_link(const Gpu* gpu);

/// The card that `name` means: its id, its driver's name, or what people write ("4090", "RTX 3060", "l4",
/// "A100-SXM4-80GB"). Throws InputError with the nearest names if that is no card or several; `where` says
/// where the name was read.
const Gpu& find_gpu(std::string_view name, const std::string& where = {});

}  // namespace vramlab
