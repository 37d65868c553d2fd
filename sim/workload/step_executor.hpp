// Performs step programs on an allocator, tensor by tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/step_program.hpp"
#include "sim/core/observation.hpp"
#include "sim/memory/allocator.hpp"

namespace vramlab {

/// How one program ended.
struct ExecutedStep {
  StepResult result = StepResult::ok;
  std::size_t ops_done = 0;        ///< operations performed; all of them if it succeeded
  std::optional<OutOfMemory> oom;  ///< the allocation that failed, if one did
};

/// Runs the programs of one workload in one process. Persistent slots live from program to program.
class StepExecutor {
 public:
  explicit StepExecutor(Allocator& allocator) : allocator_(allocator) {}

  /// Performs `program` in order. If an allocation fails, the step's own slots are freed in their order,
  /// as an unwinding program does, and persistent slots stay as they are.
  /// Throws InternalError if the program fills a slot that is full.
  ExecutedStep run(const StepProgram& program);

  /// Block of every slot that is live now; empty slots hold nothing.
  using Slots = std::vector<std::optional<BlockId>>;
  [[nodiscard]] const Slots& slots() const { return slots_; }

  /// Puts back slots read earlier, together with the allocator's state of that moment.
  void restore(Slots slots) { slots_ = std::move(slots); }

 private:
  bool perform(const MemoryOp& op, const StepProgram& program, std::optional<OutOfMemory>& oom);
  bool fill(const MemoryOp& op, std::uint32_t attempts, std::optional<OutOfMemory>& oom);
  void release(std::uint32_t slot);

  Allocator& allocator_;
  Slots slots_;
};

}  // namespace vramlab
