// The rhythm of a training program: its gradients, found without marks and stacks.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// A moment of a program that counts nothing but its allocations and frees.
using Beat = std::uint32_t;
inline constexpr Beat kNeverFreed = 0xFFFF'FFFF;

/// A program as the lifetimes of its blocks.
struct Beats {
  struct Span {
    Bytes bytes = 0;  ///< requested
    Beat birth = 0;
    Beat death = kNeverFreed;  ///< also where old blocks are freed after the last allocation
    bool initial = false;      ///< in use when recording began
  };
  std::vector<Span> blocks;                     ///< by program block, in the order of their births
  std::vector<std::vector<ProgramBlock>> runs;  ///< blocks freed in one go, with no allocation in between
  std::vector<ProgramBlock> kept;               ///< never freed
  Beat end = 0;

  explicit Beats(const ClientProgram& program);
  [[nodiscard]] Bytes sum(const std::vector<ProgramBlock>& of) const;
};

/// How many blocks there are of each size.
using SizeCounts = std::unordered_map<Bytes, std::uint32_t>;
SizeCounts count_sizes(const Beats& beats, const std::vector<ProgramBlock>& blocks);

/// Of `from`, the oldest blocks of each size, at most as many as `counts` has.
std::vector<ProgramBlock> matching(const Beats& beats, const std::vector<ProgramBlock>& from,
                                   SizeCounts counts);

/// Whether the blocks were made over a time in which other things happened, as gradients are. What an
/// optimizer makes, it makes in one go.
bool made_apart(const Beats& beats, const std::vector<ProgramBlock>& blocks);

/// The gradients that one step made.
struct StepGradients {
  std::vector<ProgramBlock> blocks;
  Beat first = 0;            ///< birth of the first
  Beat last = 0;             ///< birth of the last
  Beat freed = kNeverFreed;  ///< the first of their frees
};

/// Steps in their order. `before`: kept blocks of some use that is known already (workspaces), which are no
/// weights. Empty where there are no gradients.
std::vector<StepGradients> find_gradients(const Beats& beats, const std::vector<bool>& before);

}  // namespace vramlab
