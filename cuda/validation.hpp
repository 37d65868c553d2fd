// What validate-device measures: a program on real memory beside the simulator's, and what the driver's calls
// cost.
#pragma once

#include <optional>
#include <vector>

#include "core/units.hpp"
#include "recordings/replay/program_replay.hpp"
#include "sim/memory/segments/recorded_segments.hpp"

namespace vramlab {

/// A call for memory at which the card and the simulator are not of one mind.
struct PartedCall {
  std::size_t call = 0;  ///< counted from 0
  SegmentCall card;
  SegmentCall simulated;
};

/// A program replayed on the card of this process.
struct CardReplay {
  ReplayAgreement given;   ///< against the simulator at the bases that the driver chose
  ReplayAgreement fitted;  ///< against the simulator with bases of its own (R10.7)
  /// Where a call got another answer: against the simulator at the driver's bases with one page of 2 MiB
  /// less. Free memory below a page may lie in several pages that others began to use, and counts all the
  /// same.
  std::optional<ReplayAgreement> page_less;
  std::optional<PartedCall> other_answer;  ///< the first call that only one of the two served
  std::optional<PartedCall> other_free;    ///< the first before which the card had more or less free
  Bytes free_at_start = 0;
  Bytes free_at_end = 0;  ///< after everything was given back
  Bytes checked = 0;      ///< bytes that were read back and compared
  double card_seconds = 0;
  double simulated_seconds = 0;  ///< of the simulation at the driver's bases
  ReplayedProgram card;

  /// Every action alike, given at most one page.
  [[nodiscard]] bool agrees() const { return given.exact() || (page_less && page_less->exact()); }
};

/// Replays `program` under `settings` and `limit` on the card, every block written and read in full, then
/// in the simulator with as much memory. The card must be open.
CardReplay replay_on_card(const ClientProgram& program, const ReplaySetup& setup);

// What the driver's memory calls cost on the card of this machine, by size.

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
