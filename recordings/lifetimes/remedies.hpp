// What a program could do otherwise so that fewer blocks lie where they hold idle memory: a pool of their
// own, or another order. Each is a program that can be replayed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "recordings/lifetimes/uses.hpp"
#include "recordings/replay/lifetimes.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// A stretch is what lies between two marks.
enum class Remedy : std::uint8_t {
  pool,           ///< allocated in a MemPool of their own
  earlier,        ///< allocated at the beginning of the stretch in which they were
  freed_earlier,  ///< freed at the beginning of the stretch in which they were, if they are older than it
};
inline constexpr std::array<std::string_view, 3> kRemedyNames{"pool", "earlier", "freed earlier"};

/// A program changed in one respect, to be replayed: without stacks and notes. Blocks are numbered anew.
struct ChangedProgram {
  ClientProgram program;
  std::vector<ProgramBlock> original;  ///< by block: its number in the program it was made from
  std::size_t action = 0;  ///< after which all is done that was done after the action that was asked for
};

/// The blocks of `program` that are of one kind with any of `some`: allocated with the same stack, and where
/// none was recorded, of the same category and size.
std::vector<bool> blocks_like(const std::vector<Lifetime>& lifetimes, const std::vector<BlockUse>& uses,
                              const std::vector<ProgramBlock>& some);

/// `program` with another order, or a pool, for `blocks`, as far as they can have it: what was there when
/// recording began is not moved, nor what has a private pool already. Empty where nothing would change.
std::optional<ChangedProgram> changed(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                                      Remedy remedy, const std::vector<bool>& blocks, std::size_t action);

}  // namespace vramlab
