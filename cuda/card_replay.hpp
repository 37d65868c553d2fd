// The same program on real memory and on the simulator's, action by action.
#pragma once

#include <optional>
#include <string>

#include "trace/program_replay.hpp"

namespace vramlab {

/// How far two replays of one program agree.
struct ReplayAgreement {
  std::size_t actions = 0;
  std::size_t allocations = 0;      ///< that succeeded on the card
  std::size_t equal_addresses = 0;  ///< of these, allocations with the same address
  std::size_t ooms = 0;             ///< on the card
  std::size_t equal_ooms = 0;       ///< of the actions that failed on either side, those that failed on both
  std::size_t any_ooms = 0;         ///< actions that failed on either side
  std::size_t equal_reserved = 0;   ///< actions after which reserved bytes agree
  std::size_t equal_segments = 0;   ///< actions after which the number of segments agrees
  bool equal_layout = false;        ///< every segment and block at the end
  std::optional<std::size_t> first_difference;  ///< action
  Bytes peak_reserved_card = 0;
  Bytes peak_reserved_simulated = 0;

  [[nodiscard]] bool exact() const { return !first_difference && equal_layout; }
};

/// Compares a replay on the card with one on the simulator. Where `compare_addresses` is false, addresses do
/// not count: each side has bases of its own.
ReplayAgreement compare_replays(const ReplayedProgram& card, const ReplayedProgram& simulated,
                                bool compare_addresses);

/// A program replayed on the card of this process.
struct CardReplay {
  ReplayAgreement given;   ///< against the simulator at the bases that the driver chose
  ReplayAgreement fitted;  ///< against the simulator with bases of its own (R10.7)
  Bytes free_at_start = 0;
  Bytes free_at_end = 0;  ///< after everything was given back
  Bytes checked = 0;      ///< bytes that were read back and compared
  double card_seconds = 0;
  double simulated_seconds = 0;  ///< of the simulation at the driver's bases
  ReplayedProgram card;
};

/// Replays `program` under `settings` and `limit` on the card, every block written and read in full, then
/// twice in the simulator with as much memory. The card must be open.
CardReplay replay_on_card(const ClientProgram& program, const ReplaySetup& setup);

}  // namespace vramlab
