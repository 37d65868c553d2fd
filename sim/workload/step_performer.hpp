// The seam between a training loop and what performs its steps: a pretended card, or a real one.
#pragma once

#include <optional>

#include "models/workload_model.hpp"
#include "sim/core/observation.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {

/// How a step ended, and what it did to memory and time.
struct StepOutcome {
  StepResult result = StepResult::ok;
  SimTime duration{0};
  Bytes peak_allocated = 0;  ///< highest allocated within the step
  Bytes peak_reserved = 0;   ///< highest reserved within the step
  std::optional<OutOfMemory> oom{};
};

/// What a step needs beside its program.
struct StepAdditions {
  Bytes besides = 0;  ///< held from the begin of the step to its end
  Bytes left = 0;     ///< allocated at its end, and never given back
};

/// One process that trains a workload: performs its steps and keeps the counters a program would read.
class StepPerformer {
 public:
  virtual ~StepPerformer() = default;

  /// Performs one step at `point`. It runs out of memory if its additions do not fit, too.
  virtual StepOutcome run(const Point& point, const StepAdditions& additions) = 0;

  /// The same without any.
  StepOutcome run(const Point& point) { return run(point, {}); }

  /// Whether a step ran at `point` before.
  [[nodiscard]] virtual bool knows(const Point& point) const = 0;

  /// torch.cuda.empty_cache(). Returns the time it took.
  virtual SimTime empty_cache() = 0;

  /// torch.cuda.reset_peak_memory_stats().
  virtual void reset_peak() = 0;

  /// Sets how much of the card other processes want from now on, in bytes. What is not free now they take
  /// before a later step, as soon as this process has given memory back.
  virtual void set_others(Bytes bytes) = 0;

  /// All counters since the start of the process.
  [[nodiscard]] virtual const MemoryStats& stats() const = 0;

  /// What a policy may see of them.
  [[nodiscard]] virtual MemoryView view() const = 0;

  /// The process's allocator. Where steps come from a cache, it may be behind the run.
  [[nodiscard]] virtual const CachingAllocator& allocator() const = 0;
};

/// What a policy may see of `stats`, for a program that may use `total` bytes of a device on which nobody
/// holds `device_free` bytes.
MemoryView view_of(const MemoryStats& stats, Bytes total, Bytes device_free);

}  // namespace vramlab
