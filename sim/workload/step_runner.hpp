// Runs the steps of one workload on a pretended card and keeps the counters a program would read.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "models/workload_model.hpp"
#include "sim/workload/step_cache.hpp"

namespace vramlab {

/// The card and the settings a process runs with.
struct ProcessSetup {
  Bytes card_total = 0;        ///< driver total in bytes
  Bytes context_bytes = 0;     ///< what a bare context takes of it (R10.4)
  AllocatorOptions allocator;  ///< settings, and the limit if one is set
  bool use_step_cache = true;  ///< false: every step goes through the allocator in full
  bool keep_failed = false;    ///< tensors of a failed step stay until `forget_steps`; without the cache only
  /// Gets the allocator's whole history, from the weights on; then no step comes from the cache.
  AllocatorListener* listener = nullptr;
};

/// One process that trains `model`. The outcome of a step that meets the same allocator state again comes
/// from the cache; results are the same with and without it.
class StepRunner {
 public:
  /// Builds the workload (weights). Throws InputError if not even that fits the card.
  StepRunner(const WorkloadModel& model, const ProcessSetup& setup);
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  /// Performs one step at `point`.
  StepOutcome run(const Point& point);

  /// torch.cuda.empty_cache(). Returns the time it took.
  SimTime empty_cache();

  /// torch.cuda.reset_peak_memory_stats().
  void reset_peak();

  /// Frees everything that steps left behind (gradients, optimizer state, tensors that a failed step still
  /// holds unless `held_stay`), and empties the cache: the process is as it was built. Returns the time it
  /// took. Only with `use_step_cache` off.
  SimTime forget_steps(bool held_stay = false);

  /// Sets how much of the card other processes want from now on, in bytes. What is not free now they take
  /// before a later step, as soon as this process has given memory back.
  void set_others(Bytes bytes);

  /// How many steps came from the cache so far.
  [[nodiscard]] std::uint64_t cache_hits() const { return cache_hits_; }

  /// All counters since the start of the process.
  [[nodiscard]] const MemoryStats& stats() const { return stats_; }

  /// The process's allocator. Only with `use_step_cache` off is it where the run is.
  [[nodiscard]] const CachingAllocator& allocator() const { return process_.allocator(); }

  /// Bytes that the allocator could still reserve now: up to its limit, and free on the card.
  [[nodiscard]] Bytes available() const;

  /// What a policy may see of them.
  [[nodiscard]] MemoryView view() const;

 private:
  struct Program {
    std::uint64_t key = 0;
    StepProgram program;
  };
  struct Shape {
    std::uint64_t id = 0;
    std::size_t visits = 0;
    std::vector<Program> programs;  ///< of its first steps, then of all later ones
  };

  template <class Work>
  StepOutcome perform(StepCache::Action action, const Work& work);
  void serve_others();
  void catch_up();
  [[nodiscard]] bool worth_remembering() const;
  void remember(const StepCache::Action& action, const StepOutcome& outcome, const StatsChange& change);
  const Program& next_program(Shape& shape, const Point& point);
  StepOutcome execute(const StepProgram& program, std::uint64_t shape);

  const WorkloadModel& model_;
  ProcessSetup setup_;
  SimulatedCard card_;
  SimulatedProcess process_;
  Bytes others_wanted_ = 0;
  Bytes others_ = 0;  ///< what they got
  MemoryStats stats_;
  StepExecutor::State built_;  ///< what lives before the first step
  std::map<Point, Shape> shapes_;
  std::uint64_t programs_ = 0;
  StepCache cache_;
  std::optional<StepCache::StateId> state_;  ///< where the run is, if the cache knows it
  bool process_is_current_ = true;           ///< false: `process_` is behind, the cache knows the state
  std::size_t misses_in_a_row_ = 0;
  std::uint64_t cache_hits_ = 0;
};

}  // namespace vramlab
