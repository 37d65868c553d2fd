// Blocks that outlive their step, step after step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "recordings/alignment/alignment.hpp"
#include "recordings/replay/program_replay.hpp"

namespace vramlab {

/// Blocks made at one place in several steps, none of which was freed by the end of the recording.
struct StepLeak {
  std::string where;  ///< the line, or the use of blocks without a stack
  std::vector<std::string>
      frames;  ///< all lines of the first one's stack that the reader wrote, innermost first
  std::vector<ProgramBlock> blocks;  ///< in their order
  std::size_t first_step = 0;        ///< counted from 1
  std::size_t steps = 0;             ///< that left some
  Bytes bytes = 0;                   ///< in all of them, rounded as the allocator does
  Bytes per_step = 0;                ///< of the last step but one that left some
};

/// The leaks of a program, the largest first: of blocks with the same place (and size, where no stack is
/// known), those that at least a third of the steps (and two) have left, the last not counted. What a step
/// needs itself, such as gradients, is freed by the next one; what is made once stays once.
std::vector<StepLeak> leaks_of(const ReadProgram& read);

/// When the card would be full if the program went on as in its last step.
struct LeakForecast {
  std::size_t recorded_steps = 0;
  Bytes room = 0;      ///< that the allocator may reserve
  Bytes reserved = 0;  ///< highest in the recorded steps
  std::optional<std::size_t>
      full_at;                     ///< the first step that no longer fits, counted from 1; empty = none does
  bool extrapolated = false;       ///< beyond what was replayed, by the growth of the replayed steps
  std::size_t replayed_steps = 0;  ///< with those of the recording
  Bytes reserved_per_step = 0;     ///< growth in the second half of the replayed steps, rounded up
};

/// Replays the program under `setup`, then its last whole step again and again, without freeing what leaks.
/// Steps beyond some million actions are not replayed but extrapolated.
LeakForecast forecast_of(const ReadProgram& read, const ReplaySetup& setup, Bytes room);

}  // namespace vramlab
