// The program as it would be: calls whose activations are computed again in backward, or wait in host memory,
// and optimizer state in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "recordings/lifetimes/calls.hpp"

namespace vramlab {

/// What a call keeps for its backward, and when. Moments are actions of the program.
struct CallMemory {
  std::size_t begin = 0;            ///< of the call
  std::size_t end = 0;              ///< of the call
  std::vector<ProgramBlock> saved;  ///< made in it and held up to its backward; in the order of their births
  std::vector<std::size_t> used;    ///< of each of these, the action before which its node in backward begins
  std::vector<std::size_t> let_go;  ///< of each, the action before which forward would have freed it
  std::vector<ProgramBlock> inputs;  ///< older ones that would have to be kept up to `done`
  std::vector<ProgramBlock> taken;   ///< of `inputs`, the block made right before it that its operations save
  std::vector<ProgramBlock> outputs;  ///< of `saved`, what the next call needs up to `again`
  std::vector<ProgramBlock> casts;    ///< of `saved`, weights in autocast's precision: there up to `backward`
  std::size_t backward = 0;           ///< of its pass
  std::size_t stop = 0;               ///< the birth of the last of `saved`
  std::size_t again = 0;              ///< its backward begins before this action
  std::size_t done = 0;               ///< the last of `saved` is freed
  Bytes bytes = 0;        ///< of `saved` without `outputs` and `casts`: gone at the end of forward
  Bytes input_bytes = 0;  ///< of `inputs` that forward frees otherwise
  Bytes written = 0;      ///< all that it allocates up to `stop`
  Bytes most = 0;         ///< the most that it holds of its own on the way there
};

/// Of each call, in the order of `calls`; without `saved` where there is nothing to gain, or where its blocks
/// are in private pools.
///
/// A block of a call is saved where it is freed in the backward of its pass, after nearly all that was made
/// behind the call. The backward of a call begins with the allocations right before the first free of what it
/// saved. Its output is the last block that is there behind it and not saved, or else what its backward frees
/// first. Older blocks are its inputs where they are freed while it runs, while its backward does, or have
/// the size of its output. Where a pass saves nearly all weights in half their size, these are autocast's
/// copies, which its cache holds while forward lasts.
std::vector<CallMemory> memory_of_calls(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                                        const ProgramUses& uses, const ModelCalls& calls);

enum class Treatment : std::uint8_t {
  recompute,  ///< torch.utils.checkpoint with use_reentrant=False
  offload,    ///< torch.autograd.graph.saved_tensors_hooks that copy to host memory and back
};

struct TreatedCall {
  const CallMemory* memory = nullptr;
  Treatment treatment = Treatment::recompute;
};

/// `program` with other lives for what `calls` save, none of which may lie in another.
///
/// recompute: what a call saved is freed as soon as forward lets go of it, its inputs stay, and before its
/// backward begins it runs again in the recorded order, temporaries included, up to the last block that is
/// saved: non-reentrant checkpointing stops there. offload: freed likewise, what it took at its end, and each
/// block is there again before the operation of backward that frees it. An output that two offloaded calls in
/// a row save is away from the end of the second to the beginning of its backward. `absent`: blocks that are
/// not on the card at all; empty = none.
ClientProgram program_as_if(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                            const std::vector<TreatedCall>& calls, const std::vector<bool>& absent = {});

}  // namespace vramlab
