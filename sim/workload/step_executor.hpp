// Performs step programs on an allocator, tensor by tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
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

/// Throws InputError if `built`, the program that builds a workload, ran out of memory.
void require_built(const ExecutedStep& built);

/// Runs the programs of one workload in one process. Persistent slots live from program to program.
class StepExecutor {
 public:
  explicit StepExecutor(Allocator& allocator) : allocator_(allocator) {}

  /// Performs `program` in order; `shape` names the parameters it was made for. If an allocation fails, the
  /// step's own slots are freed in their order, as an unwinding program does, and persistent slots stay as
  /// they are. Throws InternalError if the program fills a slot that is full.
  ///
  /// A workspace that is refused `workspace_refusals` times at a shape is not asked for again there:
  /// PyTorch keeps, for each shape of a convolution, the first plan that worked.
  ExecutedStep run(const StepProgram& program, std::uint64_t shape = 0);

  /// Whether the tensors of a step that fails stay alive, as where an exception still refers to them, until
  /// `release_failed` is called. They are no part of the state.
  void keep_failed(bool keep) { keeps_failed_ = keep; }
  void release_failed();

  /// What outlives a step.
  struct State {
    std::vector<std::optional<BlockId>> slots;          ///< block of every slot; empty ones hold nothing
    std::set<std::pair<std::uint64_t, Bytes>> refused;  ///< workspaces done without: shape and size
  };
  [[nodiscard]] const State& state() const { return state_; }

  /// Puts back a state read earlier, together with the allocator's state of that moment.
  void restore(State state) { state_ = std::move(state); }

  /// Frees what lives now and did not in the `earlier` state, and forgets what was refused since.
  void release_since(const State& earlier);

 private:
  bool perform(const MemoryOp& op, const StepProgram& program, std::optional<OutOfMemory>& oom);
  bool fill(const MemoryOp& op, std::optional<OutOfMemory>& oom);
  void fill_workspace(const MemoryOp& op, std::uint32_t attempts);
  void release(std::uint32_t slot);
  void unwind(std::uint32_t slot);

  Allocator& allocator_;
  State state_;
  std::uint64_t shape_ = 0;  ///< of the step being performed
  bool keeps_failed_ = false;
  std::vector<BlockId> failed_;  ///< tensors of failed steps that are still alive
};

}  // namespace vramlab
