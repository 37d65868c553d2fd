// What validate-device measures: a program on real memory beside the simulator's, and what the driver's calls
// cost.
#pragma once

#include <optional>
#include <vector>

#include "core/units.hpp"
#include "recordings/replay/program_replay.hpp"
#include "sim/memory/segments/driver.hpp"
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

/// What the driver's memory calls take on the card of this process, medians of several calls: cudaMalloc and
/// cudaFree of 512 bytes to 16 GiB, as far as half of what is free allows, and pages of 2, 20 and 200 MiB in
/// a reserved range (cuMemMap with cuMemSetAccess, cuMemUnmap with cuMemRelease). The card must be open.
DriverTimes measure_driver_times();

}  // namespace vramlab
