// A training step as memory sees it: an ordered list of allocations and frees with a duration, and its
// writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/units.hpp"

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
  std::uint32_t stream = 0;    ///< that allocates it; 0 = the default stream

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

/// A tensor of the program being written.
struct Tensor {
  std::uint32_t slot = 0;
  Bytes size = 0;
  std::uint32_t stream = 0;  ///< 0 = the default stream
};

/// Builds a program operation by operation. Slots of a step's own tensors are used again once they are empty.
class ProgramWriter {
 public:
  /// Slots below `persistent_slots` are reserved for tensors that outlive the step.
  explicit ProgramWriter(std::uint32_t persistent_slots);

  /// Makes room for this many operations, where their number is known.
  void reserve(std::size_t operations) { program_.ops.reserve(operations); }

  /// A new tensor of the step itself; `size` in bytes, > 0.
  Tensor make(Bytes size, std::uint32_t stream = 0);

  /// A new workspace of the step itself, which may stay away if memory is short. `attempts`: what
  /// `know_attempts` returned, or 0.
  Tensor make_workspace(Bytes size, std::uint32_t attempts = 0, std::uint32_t stream = 0);

  /// Puts `attempts` into the program, once, and returns their place for `make_workspace`.
  std::uint32_t know_attempts(WorkspaceAttempts attempts);

  /// Fills a persistent slot, which must be empty when the program reaches this place.
  void make_persistent(const Tensor& tensor) { put(MemoryOpKind::allocate, tensor); }

  /// Fills a persistent slot unless an earlier step did.
  void ensure(const Tensor& tensor) { put(MemoryOpKind::ensure, tensor); }

  /// Frees a tensor. A persistent one may be absent (the gradients before the first step).
  void drop(const Tensor& tensor);

  /// A workspace that lives for one kernel; nothing for size 0.
  void use_workspace(Bytes size, std::uint32_t attempts = 0);

  /// The finished program; the writer is empty afterwards.
  [[nodiscard]] StepProgram finish();

 private:
  void put(MemoryOpKind kind, const Tensor& tensor);
  std::uint32_t take_slot();

  StepProgram program_;
  std::vector<std::uint32_t> empty_;
};

}  // namespace vramlab
