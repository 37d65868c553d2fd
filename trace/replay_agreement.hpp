// Two replays of one program held against each other, action by action.
#pragma once

#include <cstddef>
#include <optional>

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

}  // namespace vramlab
