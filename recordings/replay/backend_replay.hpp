// Replays a client program on an allocator that is not PyTorch's caching one.
#pragma once

#include <vector>

#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// Replays the requests and frees of `program` on `setup.backend`, which must not be native. A free takes
/// effect at once: none of these allocators waits for another stream. `actions` (null = nobody) gets one
/// element for each action. Throws InputError if the card is smaller than its context.
ProgramOutcome replay_on_backend(const ClientProgram& program, const ReplaySetup& setup,
                                 std::vector<ReplayedAction>* actions);

}  // namespace vramlab
