// Fidelity `steps`: every job has processes with allocators of their own, and performs its steps.
#pragma once

#include <memory>
#include <vector>

#include "sim/workload/job_execution.hpp"
#include "sim/workload/step_runner.hpp"

namespace vramlab {

/// What processes on shared cards start with.
struct StepFidelity {
  std::vector<Bytes> contexts;  ///< of one process, by pool of cards
  AllocatorOptions allocator;
};

/// A job's process on each of its cards opens a context, builds the model and performs step after step; a
/// step takes its memory as it begins. A job without a model holds blocks that sum up to what it uses less
/// the context. What a process frees stays cached, as in PyTorch, until the process ends.
///
/// A step lasts as the model says, times max(1, the sum of the busy shares of all jobs that compute on the
/// card, strangers included); for a job on several cards the slowest decides.
///
/// Steps that repeat are counted, not performed (JobProcess::Step::settled).
std::unique_ptr<JobExecution> step_execution(const std::vector<JobSpec>& jobs, const StepFidelity& fidelity,
                                             ClusterBooks& books, JobClock& clock);

/// How much longer steps take where jobs keep a card busy for `busy_milli` thousandths in all; in
/// thousandths.
constexpr std::int64_t stretch_milli(std::int64_t busy_milli) {
  return busy_milli > 1000 ? busy_milli : 1000;
}

}  // namespace vramlab
