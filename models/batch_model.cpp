#include "models/batch_model.hpp"

#include <utility>
#include <vector>

namespace vramlab {

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
      ops.push_back({MemoryOpKind::allocate, scratch, op.size});
      ops.push_back({MemoryOpKind::free, scratch, 0});
    }
  }
  step.ops = std::move(ops);
  return step;
}

}  // namespace vramlab
