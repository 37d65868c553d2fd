// Writes step programs operation by operation and hands out their slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/step_program.hpp"

namespace vramlab {

/// A tensor of the program being written.
struct Tensor {
  std::uint32_t slot = 0;
  Bytes size = 0;
};

/// Builds a program operation by operation. Slots of a step's own tensors are used again once they are empty.
class ProgramWriter {
 public:
  /// Slots below `persistent_slots` are reserved for tensors that outlive the step.
  explicit ProgramWriter(std::uint32_t persistent_slots);

  /// Room for so many operations, where that is known.
  void reserve(std::size_t operations) { program_.ops.reserve(operations); }

  /// A new tensor of the step itself; `size` in bytes, > 0.
  Tensor make(Bytes size);

  /// A new workspace of the step itself, which may stay away if memory is short. `attempts`: what
  /// `know_attempts` returned, or 0.
  Tensor make_workspace(Bytes size, std::uint32_t attempts = 0);

  /// Puts `attempts` into the program, once, and returns their place for `make_workspace`.
  std::uint32_t know_attempts(WorkspaceAttempts attempts);

  /// Fills a persistent slot, which must be empty when the program reaches this place.
  void make_persistent(const Tensor& tensor) { put(MemoryOpKind::allocate, tensor.slot, tensor.size); }

  /// Fills a persistent slot unless an earlier step did.
  void ensure(const Tensor& tensor) { put(MemoryOpKind::ensure, tensor.slot, tensor.size); }

  /// Frees a tensor. A persistent one may be absent (the gradients before the first step).
  void drop(const Tensor& tensor);

  /// A workspace that lives for one kernel; nothing for size 0.
  void use_workspace(Bytes size, std::uint32_t attempts = 0);

  /// The finished program; the writer is empty afterwards.
  [[nodiscard]] StepProgram finish();

 private:
  void put(MemoryOpKind kind, std::uint32_t slot, Bytes size);
  std::uint32_t take_slot();

  StepProgram program_;
  std::vector<std::uint32_t> empty_;
};

}  // namespace vramlab
