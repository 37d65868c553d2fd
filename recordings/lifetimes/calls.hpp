// The parts of a model as its forward runs them: calls of modules told from stacks, or the repeated structure
// of a program without any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "recordings/lifetimes/uses.hpp"
#include "recordings/replay/lifetimes.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// A forward of the program and the backward that follows it, in actions: forward is [begin, backward),
/// backward is [backward, end).
struct Pass {
  std::size_t begin = 0;
  std::size_t backward = 0;
  std::size_t end = 0;
};

inline constexpr std::uint32_t kNoCall = 0xFFFF'FFFF;

/// One call of a part of the model in a forward. Its actions are [begin, end): from its first allocation up
/// to the next one that is not its own.
struct Call {
  std::uint32_t place = 0;         ///< in ModelCalls::places
  std::uint32_t number = 0;        ///< of the calls from that place in its pass, from 0
  std::uint32_t pass = 0;          ///< in ModelCalls::passes
  std::uint32_t parent = kNoCall;  ///< the call that it was made from, in ModelCalls::calls
  std::size_t begin = 0;
  std::size_t end = 0;
  bool has_calls = false;  ///< other parts are called from it
};

/// How the parts were told.
enum class CallSource : std::uint8_t {
  stacks,       ///< of the forward's allocations
  annotations,  ///< of the snapshot, in which these were made
  structure,    ///< the same sizes again and again
  none,
};

/// All calls of a program. A call stands behind the one that it was made from, and before what comes later.
struct ModelCalls {
  CallSource source = CallSource::none;
  std::vector<Pass> passes;
  /// "modeling_llama.py:403": the line that calls; where names of modules were recorded "model.norm" and
  /// "model.layers.*"; annotations as they are, but for the number at their end; of a structure "layer".
  std::vector<std::string> places;
  std::vector<Call> calls;
};

/// Finds passes and calls. A pass begins with what follows the backward before it; passes without a backward
/// are none. Backward is what was allocated without Python frames, or by PyTorch's autograd; in a program
/// without stacks it begins behind the last activation that is older than a step's gradients. Two forwards
/// before one backward are one pass. Calls of a line that follow each other are told apart where the sequence
/// of stacks repeats as a whole, where another function is called, and where the first stack comes again.
ModelCalls calls_of(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                    const ProgramUses& uses);

/// "modeling_llama.py:403#2".
std::string name_of(const ModelCalls& calls, const Call& call);

}  // namespace vramlab
