#include "sim/workload/step_executor.hpp"

#include <string>

#include "sim/core/error.hpp"

namespace vramlab {

void require_built(const ExecutedStep& built) {
  if (built.result != StepResult::oom) return;
  throw InputError("", "the workload's weights alone do not fit: " + format_bytes(built.oom->requested) +
                           " more were asked for with " + format_bytes(built.oom->device_free) +
                           " free on the card. Take a larger card or limit.");
}

ExecutedStep StepExecutor::run(const StepProgram& program, std::uint64_t shape) {
  if (state_.slots.size() < program.slots) state_.slots.resize(program.slots);
  shape_ = shape;
  ExecutedStep step;
  for (const MemoryOp& op : program.ops) {
    if (!perform(op, program, step.oom)) {
      step.result = StepResult::oom;
      for (std::uint32_t slot = program.persistent_slots; slot < program.slots; ++slot) unwind(slot);
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
      return state_.slots[op.slot].has_value() || fill(op, oom);
    case MemoryOpKind::workspace:
      fill_workspace(op, program.workspace_refusals);
      return true;
    case MemoryOpKind::allocate:
      break;
  }
  return fill(op, oom);
}

bool StepExecutor::fill(const MemoryOp& op, std::optional<OutOfMemory>& oom) {
  std::optional<BlockId>& slot = state_.slots[op.slot];
  if (slot) throw InternalError("a step program fills slot " + std::to_string(op.slot) + " twice");
  const AllocationResult allocation = allocator_.allocate(op.size, kDefaultStream);
  if (allocation) {
    slot = allocation->block;
  } else {
    oom = allocation.oom();
  }
  return slot.has_value();
}

void StepExecutor::fill_workspace(const MemoryOp& op, std::uint32_t attempts) {
  if (state_.refused.contains({shape_, op.size})) return;
  std::optional<OutOfMemory> refusal;
  for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
    if (fill(op, refusal)) return;
  }
  state_.refused.emplace(shape_, op.size);
}

void StepExecutor::unwind(std::uint32_t slot) {
  if (keeps_failed_ && state_.slots[slot]) {
    failed_.push_back(*state_.slots[slot]);
    state_.slots[slot].reset();
  }
  release(slot);
}

void StepExecutor::release_failed() {
  for (const BlockId block : failed_) allocator_.free(block);
  failed_.clear();
}

void StepExecutor::release_since(const State& earlier) {
  for (std::uint32_t slot = 0; slot < state_.slots.size(); ++slot) {
    if (slot >= earlier.slots.size() || !earlier.slots[slot]) release(slot);
  }
  state_.refused = earlier.refused;
}

void StepExecutor::release(std::uint32_t slot) {
  std::optional<BlockId>& block = state_.slots[slot];
  if (!block) return;
  allocator_.free(*block);
  block.reset();
}

}  // namespace vramlab
