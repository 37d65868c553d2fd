// One training process on a pretended card: its segments, its allocator, and the tensors it holds.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/sim_segments.hpp"
#include "sim/memory/simulated_card.hpp"
#include "sim/workload/step_executor.hpp"

namespace vramlab {

/// Everything that a step can change, with a copy and a canonical description of it.
class SimulatedProcess {
 public:
  SimulatedProcess(SimulatedCard& card, const AllocatorOptions& options)
      : segments_(card), allocator_(segments_, options), executor_(allocator_) {}
  SimulatedProcess(const SimulatedProcess&) = delete;
  SimulatedProcess& operator=(const SimulatedProcess&) = delete;

  [[nodiscard]] CachingAllocator& allocator() { return allocator_; }
  [[nodiscard]] const CachingAllocator& allocator() const { return allocator_; }
  [[nodiscard]] StepExecutor& executor() { return executor_; }

  /// Time spent in cudaMalloc, cudaFree and their like so far (R10.6).
  [[nodiscard]] SimTime driver_time() const { return segments_.driver_time(); }

  /// A copy of the whole state; `restore` puts it back, block ids included.
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
  SimSegments segments_;
  CachingAllocator allocator_;
  StepExecutor executor_;
};

}  // namespace vramlab
