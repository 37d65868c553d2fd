#include "sim/runs/step_executor.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "models/recorded_model.hpp"

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
  for (std::size_t at = 0; at < program.ops.size(); ++at) {
    if (!perform(at, program, step.oom)) {
      step.result = StepResult::oom;
      keep_plans(program, at);
      for (std::uint32_t slot = program.persistent_slots; slot < program.slots; ++slot) {
        if (keeps_failed_ && state_.slots[slot]) failed_.push_back(*std::exchange(state_.slots[slot], {}));
        release(slot);
      }
      return step;
    }
    ++step.ops_done;
  }
  if (!program.attempts.empty()) state_.visited.insert(shape);
  return step;
}

bool StepExecutor::perform(std::size_t at, const StepProgram& program, std::optional<OutOfMemory>& oom) {
  const MemoryOp& op = program.ops[at];
  switch (op.kind) {
    case MemoryOpKind::free:
      release(op.slot);
      return true;
    case MemoryOpKind::ensure:
      return state_.slots[op.slot].has_value() || fill(op, op.size, oom);
    case MemoryOpKind::workspace:
      fill_workspace(at, program);
      return true;
    case MemoryOpKind::allocate:
      break;
  }
  return fill(op, op.size, oom);
}

bool StepExecutor::fill(const MemoryOp& op, Bytes size, std::optional<OutOfMemory>& oom) {
  std::optional<BlockId>& slot = state_.slots[op.slot];
  if (slot) throw InternalError("a step program fills slot " + std::to_string(op.slot) + " twice");
  const AllocationResult allocation = allocator_.allocate(size, op.stream);
  if (allocation) {
    slot = allocation->block;
  } else {
    oom = allocation.oom();
  }
  return slot.has_value();
}

void StepExecutor::fill_workspace(std::size_t at, const StepProgram& program) {
  const MemoryOp& op = program.ops[at];
  Bytes size = op.size;
  if (!state_.plans.empty()) {
    const auto plan = state_.plans.find(plan_key(op, program));
    if (plan != state_.plans.end()) size = plan->second;
  }
  std::optional<OutOfMemory> refusal;
  if (size == 0 || fill(op, size, refusal)) return;
  find_plan(at, program);
}

// What was asked for first has just been refused.
void StepExecutor::find_plan(std::size_t at, const StepProgram& program) {
  const MemoryOp& op = program.ops[at];
  const std::vector<Bytes> same(program.workspace_refusals, op.size);
  const std::vector<Bytes>& sizes = op.attempts == 0 ? same : program.attempts[op.attempts - 1].sizes;
  std::size_t attempt = was_planned(at, program) ? 0 : 1;
  std::optional<OutOfMemory> refusal;
  while (attempt < sizes.size() && !fill(op, sizes[attempt], refusal)) ++attempt;
  const Bytes plan = attempt < sizes.size() ? sizes[attempt] : 0;
  if (plan == op.size) {
    state_.plans.erase(plan_key(op, program));
  } else {
    state_.plans[plan_key(op, program)] = plan;
  }
}

// Whether a plan was kept before, in an earlier step at the shape or earlier in this one.
bool StepExecutor::was_planned(std::size_t at, const StepProgram& program) const {
  const MemoryOp& op = program.ops[at];
  if (op.attempts == 0) return false;
  if (state_.visited.contains(shape_) || state_.plans.contains(plan_key(op, program))) return true;
  return std::any_of(program.ops.begin(), program.ops.begin() + static_cast<std::ptrdiff_t>(at),
                     [&](const MemoryOp& earlier) {
                       return earlier.kind == MemoryOpKind::workspace && earlier.attempts == op.attempts;
                     });
}

// A step that failed made plans for the operations it got to.
void StepExecutor::keep_plans(const StepProgram& program, std::size_t ops_done) {
  if (state_.visited.contains(shape_)) return;
  for (std::size_t at = 0; at < ops_done; ++at) {
    const MemoryOp& op = program.ops[at];
    if (op.kind == MemoryOpKind::workspace && op.attempts != 0) {
      state_.plans.try_emplace(plan_key(op, program), op.size);
    }
  }
}

StepExecutor::PlanKey StepExecutor::plan_key(const MemoryOp& op, const StepProgram& program) const {
  const std::uint64_t kernel = op.attempts == 0 ? 0 : program.attempts[op.attempts - 1].kernel + 1ULL;
  return {shape_, kernel, op.size};
}

void StepExecutor::release_failed() {
  for (const BlockId block : failed_) allocator_.free(block);
  failed_.clear();
}

void StepExecutor::release_since(const State& earlier) {
  for (std::uint32_t slot = 0; slot < state_.slots.size(); ++slot) {
    if (slot >= earlier.slots.size() || !earlier.slots[slot]) release(slot);
  }
  state_.plans = earlier.plans;
  state_.visited = earlier.visited;
}

void StepExecutor::release(std::uint32_t slot) {
  std::optional<BlockId>& block = state_.slots[slot];
  if (!block) return;
  allocator_.free(*block);
  block.reset();
}

SimulatedProcess::State SimulatedProcess::save() const {
  return {segments_.save(), allocator_.save(), executor_.state()};
}

void SimulatedProcess::restore(const State& state) {
  segments_.restore(state.segments);
  allocator_.restore(state.allocator);
  executor_.restore(state.executor);
}

std::vector<std::uint64_t> SimulatedProcess::canonical_state() const {
  std::vector<std::uint64_t> out;
  segments_.append_canonical_state(out);
  allocator_.append_canonical_state(out);
  const StepExecutor::State& executed = executor_.state();
  out.push_back(executed.plans.size());
  for (const auto& [key, plan] : executed.plans) {
    const auto& [shape, kernel, size] = key;
    out.insert(out.end(), {shape, kernel, size, plan});
  }
  out.push_back(executed.visited.size());
  out.insert(out.end(), executed.visited.begin(), executed.visited.end());
  for (const auto& block : executed.slots) out.push_back(block ? allocator_.address_of(*block) : 0);
  while (!out.empty() && out.back() == 0) out.pop_back();  // slots that were never used say nothing
  return out;
}

std::vector<SegmentPlace> recorded_places(const WorkloadModel& model) {
  std::vector<SegmentPlace> places;
  const auto* recorded = dynamic_cast<const RecordedModel*>(&model);
  if (recorded == nullptr) return places;
  for (const auto& [address, size] : recorded->spec().segments) places.push_back({address, size});
  return places;
}

}  // namespace vramlab
