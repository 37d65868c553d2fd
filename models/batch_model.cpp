#include "models/batch_model.hpp"

#include <set>
#include <utility>

namespace vramlab {

StepProgram accumulating(StepProgram step) {
  std::set<std::uint32_t> gradients;
  for (const MemoryOp& op : step.ops) {
    if (op.kind == MemoryOpKind::allocate && op.slot < step.persistent_slots) gradients.insert(op.slot);
  }
  const std::uint32_t scratch = step.slots++;
  std::vector<MemoryOp> ops;
  for (const MemoryOp& op : step.ops) {
    if (!gradients.contains(op.slot)) {
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
