// Performs step programs on an allocator, tensor by tensor; and the process on a pretended card that does so.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/observation.hpp"
#include "models/step_program.hpp"
#include "models/workload_model.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/others/backends.hpp"
#include "sim/memory/segments/sim_segments.hpp"

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
  /// A workspace that is refused is looked for among its `attempts`, each asked for once, or is asked for
  /// `workspace_refusals` times if they are not known. What was found then, a smaller workspace or none, is
  /// kept for the shape: PyTorch keeps, for each shape of a convolution, the first plan that worked. Where a
  /// plan that worked before is refused, all attempts follow, that one included.
  ExecutedStep run(const StepProgram& program, std::uint64_t shape = 0);

  /// Whether the tensors of a step that fails stay alive, as where an exception still refers to them, until
  /// `release_failed` is called. They are not part of the state.
  void keep_failed(bool keep) { keeps_failed_ = keep; }
  void release_failed();

  /// A workspace at a shape: the shape, 1 + its kernel (0 = its attempts are not known), its size.
  using PlanKey = std::tuple<std::uint64_t, std::uint64_t, Bytes>;

  /// What outlives a step.
  struct State {
    std::vector<std::optional<BlockId>> slots;  ///< block of every slot; empty ones hold nothing
    std::map<PlanKey, Bytes> plans;             ///< workspaces used instead of the first choice; 0 = none
    std::set<std::uint64_t> visited;            ///< shapes at which a step with known attempts succeeded
  };
  [[nodiscard]] const State& state() const { return state_; }

  /// Puts back a state read earlier, together with the allocator's state of that moment.
  void restore(State state) { state_ = std::move(state); }

  /// Frees what lives now and did not in the `earlier` state, and forgets the plans made since.
  void release_since(const State& earlier);

 private:
  bool perform(std::size_t at, const StepProgram& program, std::optional<OutOfMemory>& oom);
  bool fill(const MemoryOp& op, Bytes size, std::optional<OutOfMemory>& oom);
  void fill_workspace(std::size_t at, const StepProgram& program);
  void find_plan(std::size_t at, const StepProgram& program);
  [[nodiscard]] PlanKey plan_key(const MemoryOp& op, const StepProgram& program) const;
  [[nodiscard]] bool was_planned(std::size_t at, const StepProgram& program) const;
  void keep_plans(const StepProgram& program, std::size_t ops_done);
  void release(std::uint32_t slot);

  Allocator& allocator_;
  State state_;
  std::uint64_t shape_ = 0;  ///< of the step being performed
  bool keeps_failed_ = false;
  std::vector<BlockId> failed_;  ///< tensors of failed steps that are still alive
};

/// One training process on a pretended card: its segments, its allocator, and the tensors it holds;
/// everything that a step can change, with a copy and a canonical description of it.
class SimulatedProcess {
 public:
  /// `places`: where a recorded process had its segments; one that asks for the same has them there too.
  SimulatedProcess(SimulatedCard& card, const AllocatorOptions& options,
                   std::vector<SegmentPlace> places = {})
      : places_(std::move(places)),
        segments_(card, places_.empty() ? DriverAddresses::of_training_process()
                                        : DriverAddresses::of_recording(places_)),
        allocator_(segments_, options),
        other_(options.backend.is_native() ? nullptr
                                           : make_backend(segments_, options.backend, options.limit)),
        executor_(memory()) {}
  SimulatedProcess(const SimulatedProcess&) = delete;
  SimulatedProcess& operator=(const SimulatedProcess&) = delete;

  /// What serves the program: the caching allocator, or that of another backend.
  [[nodiscard]] Allocator& memory() { return other_ ? *other_ : allocator_; }
  [[nodiscard]] const Allocator& memory() const { return const_cast<SimulatedProcess*>(this)->memory(); }

  /// The caching allocator, which holds nothing where the backend is another one.
  [[nodiscard]] CachingAllocator& allocator() { return allocator_; }
  [[nodiscard]] const CachingAllocator& allocator() const { return allocator_; }
  [[nodiscard]] StepExecutor& executor() { return executor_; }

  /// Time spent in cudaMalloc, cudaFree and their like so far (R10.6).
  [[nodiscard]] SimTime driver_time() const { return segments_.driver_time(); }

  /// A copy of the whole state; `restore` puts it back, block ids included. Of the caching allocator only.
  struct State {
    SimSegments::State segments;
    CachingAllocator::State allocator;
    StepExecutor::State executor;
  };
  [[nodiscard]] State save() const;
  void restore(const State& state);

  /// Equal descriptions behave equally from here on, whatever their counters say.
  [[nodiscard]] std::vector<std::uint64_t> canonical_state() const;

 private:
  std::vector<SegmentPlace> places_;
  SimSegments segments_;
  CachingAllocator allocator_;
  std::unique_ptr<Allocator> other_;  ///< empty = the caching allocator serves the program
  StepExecutor executor_;
};

/// Where the segments of the process lay that `model` was recorded from; empty if it was not, or that is not
/// known.
std::vector<SegmentPlace> recorded_places(const WorkloadModel& model);

}  // namespace vramlab
