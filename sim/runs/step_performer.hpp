// The steps of a run: the seam to what performs them, a pretended card or a real one.
#pragma once

#include <cstdint>
#include <optional>

#include "core/observation.hpp"
#include "core/parameter_space.hpp"
#include "models/step_program.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
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

/// The highest share of a card that any step took. Cards may differ in size.
struct CardPeak {
  Bytes bytes = 0;
  Bytes total = 0;  ///< of that card

  void note(Bytes peak, Bytes of) {
    const bool higher = static_cast<double>(peak) * static_cast<double>(total) >
                        static_cast<double>(bytes) * static_cast<double>(of);
    if (total == 0 || higher) *this = {peak, of};
  }
};

/// What a step needs beside its program.
struct StepAdditions {
  Bytes besides = 0;  ///< held from the beginning of the step to its end
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

  /// Performs `program`, made for parameters that `shape` names. Not where steps come from a cache.
  virtual StepOutcome run_program(const StepProgram& program, std::uint64_t shape,
                                  const StepAdditions& additions) = 0;

  /// Whether a step ran at `point` before.
  [[nodiscard]] virtual bool knows(const Point& point) const = 0;

  /// torch.cuda.empty_cache(). Returns the time it took.
  virtual SimTime empty_cache() = 0;

  /// Frees everything that steps left behind (gradients, optimizer state, tensors that a failed step still
  /// holds unless `held_stay`), and empties the cache: the process is as it was built. Returns the time it
  /// took. Not where steps come from a cache.
  virtual SimTime forget_steps(bool held_stay) = 0;

  /// Lets the process reserve `share` of what it was set up with, in (0, 1], from now on. Not where steps
  /// come from a cache.
  virtual void use_share(double share) = 0;

  /// torch.cuda.reset_peak_memory_stats().
  virtual void reset_peak() = 0;

  /// Sets how much of the card other processes want from now on, in bytes. What is not free now they take
  /// before a later step, as soon as this process has given memory back.
  virtual void set_others(Bytes bytes) = 0;

  /// All counters since the start of the process.
  [[nodiscard]] virtual const MemoryStats& stats() const = 0;

  /// What a policy may see of them.
  [[nodiscard]] virtual MemoryView view() const = 0;

  /// Bytes that the allocator could still reserve now: up to its limit, and free on the card.
  [[nodiscard]] virtual Bytes available() const = 0;

  /// The process's allocator. Where steps come from a cache, it may be behind the run.
  [[nodiscard]] virtual const CachingAllocator& allocator() const = 0;
};

}  // namespace vramlab
