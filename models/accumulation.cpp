#include "models/accumulation.hpp"

#include <algorithm>

namespace vramlab {
namespace {

/// One part of a step, cut where its backward ends.
class BatchPart {
 public:
  /// `attempts`: of the program that it becomes part of, so far.
  BatchPart(const StepProgram& step, std::size_t attempts)
      : step_(step), is_gradient_(step.slots), attempts_(static_cast<std::uint32_t>(attempts)) {
    for (std::size_t i = 0; i < step.ops.size(); ++i) {
      const MemoryOp& op = step.ops[i];
      if (op.kind != MemoryOpKind::allocate || op.slot >= step.persistent_slots) continue;
      is_gradient_[op.slot] = true;
      end_ = i + 1;
    }
    while (end_ < step.ops.size() && step.ops[end_].kind == MemoryOpKind::free) ++end_;
  }

  [[nodiscard]] bool is_gradient(const MemoryOp& op) const { return is_gradient_[op.slot]; }

  /// The frees of the gradients of the step before.
  [[nodiscard]] std::vector<MemoryOp> dropping() const {
    std::vector<MemoryOp> ops;
    for (const MemoryOp& op : step_.ops) {
      if (op.kind == MemoryOpKind::free && is_gradient(op)) ops.push_back(op);
    }
    return ops;
  }

  /// Forward and backward, without those frees. `later`: gradients of a part before are there. `clear`: at
  /// the end nothing of the part's own is left.
  void append(bool later, bool clear, StepProgram& program) const {
    StepProgram part = step_;
    part.ops.resize(end_);
    std::erase_if(part.ops,
                  [&](const MemoryOp& op) { return op.kind == MemoryOpKind::free && is_gradient(op); });
    if (later) part = accumulating(std::move(part));
    program.slots = std::max(program.slots, part.slots);
    std::vector<bool> held(part.slots);
    for (MemoryOp op : part.ops) {
      if (op.attempts > 0) op.attempts += attempts_;
      program.ops.push_back(op);
      held[op.slot] = op.kind != MemoryOpKind::free;
    }
    for (std::uint32_t slot = part.persistent_slots; clear && slot < part.slots; ++slot) {
      if (held[slot]) program.ops.push_back({MemoryOpKind::free, slot, 0});
    }
  }

  /// What comes behind backward.
  void append_rest(StepProgram& program) const {
    for (std::size_t i = end_; i < step_.ops.size(); ++i) {
      if (step_.ops[i].kind == MemoryOpKind::free && is_gradient(step_.ops[i])) continue;
      program.ops.push_back(step_.ops[i]);
      if (program.ops.back().attempts > 0) program.ops.back().attempts += attempts_;
    }
  }

 private:
  const StepProgram& step_;
  std::vector<bool> is_gradient_;  ///< by slot
  std::uint32_t attempts_ = 0;
  std::size_t end_ = 0;  ///< of backward, in operations
};

}  // namespace

std::vector<std::int64_t> parts_of_batch(std::int64_t whole, std::int64_t part) {
  std::vector<std::int64_t> parts;
  for (std::int64_t left = whole; left > 0; left -= part) parts.push_back(std::min(left, part));
  return parts;
}

StepProgram step_in_parts(std::span<const StepProgram> parts) {
  if (parts.size() == 1) return parts.front();
  StepProgram program{.persistent_slots = parts.front().persistent_slots, .duration = SimTime{0}};
  program.workspace_refusals = parts.front().workspace_refusals;
  program.ops = BatchPart(parts.front(), 0).dropping();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BatchPart part(parts[i], program.attempts.size());
    const bool last = i + 1 == parts.size();
    part.append(i > 0, !last, program);
    if (last) part.append_rest(program);
    program.attempts.insert(program.attempts.end(), parts[i].attempts.begin(), parts[i].attempts.end());
    program.duration += parts[i].duration;
  }
  return program;
}

StepProgram step_in_parts(const WorkloadModel& model, const Point& point, std::size_t parameter,
                          std::int64_t part) {
  std::vector<StepProgram> steps;
  Point of_part = point;
  for (const std::int64_t size : parts_of_batch(point[parameter], part)) {
    if (!steps.empty() && of_part[parameter] == size) {
      steps.push_back(steps.back());
      continue;
    }
    of_part[parameter] = size;
    steps.push_back(model.step(of_part));
  }
  return step_in_parts(steps);
}

}  // namespace vramlab
