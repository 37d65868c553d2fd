// The steps of a run: the seam to what performs them, a pretended card or a real one, and the program that is
// due.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/observation.hpp"
#include "models/workload_model.hpp"
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

// The program of every step of a run: a model's answers, each asked for once.

/// Counts how often each point was visited and gives the step program that is due there.
class StepPrograms {
 public:
  /// A program with its numbers, which count from 1.
  struct Program {
    std::uint64_t key = 0;    ///< one for each different program
    std::uint64_t shape = 0;  ///< one for each point
    StepProgram program;
  };

  /// `model` must outlive this.
  explicit StepPrograms(const WorkloadModel& model) : model_(model) {}

  /// The next step at `point`. Stays valid until the next call.
  const Program& next(const Point& point);

  /// Whether `point` was visited.
  [[nodiscard]] bool knows(const Point& point) const { return shapes_.contains(point); }

  /// Every point is a new one again.
  void forget() { shapes_.clear(); }

 private:
  struct Shape {
    std::uint64_t id = 0;
    std::size_t visits = 0;
    std::vector<Program> programs;  ///< of its first steps, then of all later ones
  };

  const WorkloadModel& model_;
  std::map<Point, Shape> shapes_;
  std::uint64_t programs_ = 0;
};

}  // namespace vramlab
