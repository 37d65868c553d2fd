// A training step as memory sees it: an ordered list of allocations and frees, and how long it takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// What one operation of a step does with its slot.
enum class MemoryOpKind : std::uint8_t {
  allocate,   ///< fills an empty slot
  free,       ///< empties the slot; a slot that is empty stays so
  ensure,     ///< fills the slot unless it is full: state that the first step creates (optimizer, workspaces)
  workspace,  ///< fills the slot, or leaves it empty if memory is short: the library does without
};

/// One allocation or free. Slots are small dense numbers that name tensors.
struct MemoryOp {
  MemoryOpKind kind = MemoryOpKind::allocate;
  std::uint32_t slot = 0;
  Bytes size = 0;              ///< requested bytes, before the allocator rounds them; 0 for a free
  std::uint32_t attempts = 0;  ///< of a workspace: 1 + its place in StepProgram::attempts; 0 = not known

  friend bool operator==(const MemoryOp&, const MemoryOp&) = default;
};

/// What a library asks for in turn when the workspace of its first choice is refused: the workspaces of its
/// other kernels, in the order of its preference. The first that is granted is used; after the last it does
/// without.
struct WorkspaceAttempts {
  std::uint32_t kernel = 0;  ///< equal for operations that the library takes for the same
  std::vector<Bytes> sizes;  ///< requested bytes; the first is the operation's own size

  friend bool operator==(const WorkspaceAttempts&, const WorkspaceAttempts&) = default;
};

/// A step at given parameters. Slots below `persistent_slots` outlive the step (weights, gradients,
/// optimizer state) and mean the same tensor in every program of one workload; the others are the step's
/// own, and the executor frees those that are left if the step fails.
struct StepProgram {
  std::vector<MemoryOp> ops;
  std::uint32_t persistent_slots = 0;
  std::uint32_t slots = 0;  ///< all slots, persistent ones included
  SimTime duration{0};      ///< of a step that succeeds, without the time that cudaMalloc and cudaFree take
  std::vector<WorkspaceAttempts> attempts{};
  std::uint32_t workspace_refusals = 1;  ///< attempts at a workspace whose `attempts` are not known
};

}  // namespace vramlab
