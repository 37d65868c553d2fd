#include "sim/workload/step_executor.hpp"

#include <algorithm>
#include <string>

#include "sim/core/error.hpp"

namespace vramlab {

ExecutedStep StepExecutor::run(const StepProgram& program) {
  if (slots_.size() < program.slots) slots_.resize(program.slots);
  ExecutedStep step;
  for (const MemoryOp& op : program.ops) {
    if (!perform(op, program, step.oom)) {
      step.result = StepResult::oom;
      for (std::uint32_t slot = program.persistent_slots; slot < program.slots; ++slot) release(slot);
      return step;
    }
    ++step.ops_done;
  }
  return step;
}

bool StepExecutor::perform(const MemoryOp& op, const StepProgram& program, std::optional<OutOfMemory>& oom) {
  switch (op.kind) {
    case MemoryOpKind::free:
      release(op.slot);
      return true;
    case MemoryOpKind::ensure:
      return slots_[op.slot].has_value() || fill(op, 1, oom);
    case MemoryOpKind::workspace: {
      std::optional<OutOfMemory> refused;  // the library does without
      fill(op, std::max<std::uint32_t>(1, program.workspace_refusals), refused);
      return true;
    }
    case MemoryOpKind::allocate:
      break;
  }
  return fill(op, 1, oom);
}

bool StepExecutor::fill(const MemoryOp& op, std::uint32_t attempts, std::optional<OutOfMemory>& oom) {
  if (slots_[op.slot]) throw InternalError("a step program fills slot " + std::to_string(op.slot) + " twice");
  for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
    const AllocationResult allocation = allocator_.allocate(op.size, kDefaultStream);
    if (allocation) {
      slots_[op.slot] = allocation->block;
      return true;
    }
    oom = allocation.oom();
  }
  return false;
}

void StepExecutor::release(std::uint32_t slot) {
  if (!slots_[slot]) return;
  allocator_.free(*slots_[slot]);
  slots_[slot].reset();
}

}  // namespace vramlab
