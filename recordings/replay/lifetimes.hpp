// The blocks of a recorded program from birth to death, with what is known of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// One block. Moments are numbers of the program's actions; one that never comes is their count.
struct Lifetime {
  std::size_t born = 0;      ///< its alloc
  std::size_t freed = 0;     ///< its free: the program is done with it
  std::size_t returned = 0;  ///< when other streams are, too, and its memory may be used again: at the latest
  Bytes requested = 0;
  Bytes rounded = 0;  ///< to multiples of 512, the least block for it (R1.2); 0 if it was given nothing
  StreamId stream = 0;
  ProgramPool pool = 0;     ///< 0 = the default pools
  std::uint32_t stack = 0;  ///< of ClientProgram::stacks; 0 = not known
  std::uint32_t step = 0;   ///< marks before its birth: the number of its stretch, from 0
  bool captured = false;    ///< asked for while a CUDA graph was captured
  bool before_recording = false;
  /// Under the settings that were replayed, where a replay is given.
  std::optional<BlockPlace> place;

  [[nodiscard]] bool outlives(const ClientProgram& program) const { return freed >= program.actions.size(); }
};

/// By block. `places` are those of a replay (ReplayKeeps::places), or null.
std::vector<Lifetime> lifetimes_of(const ClientProgram& program,
                                   const std::vector<BlockPlace>* places = nullptr);

/// Names of the stretches of a program, by Lifetime::step: of the mark at the end of each; the last one,
/// after all marks, is empty.
std::vector<std::string> step_names(const ClientProgram& program);

}  // namespace vramlab
