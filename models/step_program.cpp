#include "models/step_program.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/workload_model.hpp"

namespace vramlab {

ProgramWriter::ProgramWriter(std::uint32_t persistent_slots) {
  program_.persistent_slots = persistent_slots;
  program_.slots = persistent_slots;
}

Tensor ProgramWriter::make(Bytes size, std::uint32_t stream) {
  const Tensor tensor{take_slot(), size, stream};
  put(MemoryOpKind::allocate, tensor);
  return tensor;
}

Tensor ProgramWriter::make_workspace(Bytes size, std::uint32_t attempts, std::uint32_t stream) {
  const Tensor workspace{take_slot(), size, stream};
  put(MemoryOpKind::workspace, workspace);
  program_.ops.back().attempts = attempts;
  return workspace;
}

std::uint32_t ProgramWriter::know_attempts(WorkspaceAttempts attempts) {
  auto& known = program_.attempts;
  const auto place = std::find(known.begin(), known.end(), attempts);
  const auto number = static_cast<std::uint32_t>(place - known.begin()) + 1;
  if (place == known.end()) known.push_back(std::move(attempts));
  return number;
}

void ProgramWriter::drop(const Tensor& tensor) {
  put(MemoryOpKind::free, {tensor.slot});
  if (tensor.slot >= program_.persistent_slots) empty_.push_back(tensor.slot);
}

void ProgramWriter::use_workspace(Bytes size, std::uint32_t attempts) {
  if (size == 0) return;
  drop(make_workspace(size, attempts));
}

StepProgram ProgramWriter::finish() {
  empty_.clear();
  return std::exchange(program_, StepProgram{});
}

void ProgramWriter::put(MemoryOpKind kind, const Tensor& tensor) {
  program_.ops.push_back({.kind = kind, .slot = tensor.slot, .size = tensor.size, .stream = tensor.stream});
}

std::uint32_t ProgramWriter::take_slot() {
  if (empty_.empty()) return program_.slots++;
  const std::uint32_t slot = empty_.back();
  empty_.pop_back();
  return slot;
}

StepProgram accumulating(StepProgram step) {
  std::vector<bool> is_gradient(step.slots, false);
  for (const MemoryOp& op : step.ops) {
    if (op.kind == MemoryOpKind::allocate && op.slot < step.persistent_slots) is_gradient[op.slot] = true;
  }
  const std::uint32_t scratch = step.slots++;
  std::vector<MemoryOp> ops;
  ops.reserve(step.ops.size());
  for (const MemoryOp& op : step.ops) {
    if (!is_gradient[op.slot]) {
      ops.push_back(op);
    } else if (op.kind == MemoryOpKind::allocate) {
      ops.push_back({.kind = MemoryOpKind::allocate, .slot = scratch, .size = op.size, .stream = op.stream});
      ops.push_back({MemoryOpKind::free, scratch, 0});
    }
  }
  step.ops = std::move(ops);
  return step;
}

}  // namespace vramlab
