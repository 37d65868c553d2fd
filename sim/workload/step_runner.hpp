// Runs the steps of one workload on a pretended card and keeps the counters a program would read.
#pragma once

#include <optional>

#include "models/workload_model.hpp"
#include "sim/workload/step_cache.hpp"
#include "sim/workload/step_performer.hpp"
#include "sim/workload/step_programs.hpp"

namespace vramlab {

/// The card and the settings a process runs with.
struct ProcessSetup {
  Bytes card_total = 0;        ///< driver total in bytes
  Bytes context_bytes = 0;     ///< what a bare context takes of it (R10.4)
  AllocatorOptions allocator;  ///< settings, and the limit if one is set
  DriverTimes driver_times = DriverTimes::of_h100();
  bool use_step_cache = true;  ///< false: every step goes through the allocator in full
  bool keep_failed = false;    ///< tensors of a failed step stay until `forget_steps`; without the cache only
  /// Gets the allocator's whole history, from the weights on; then no step comes from the cache.
  AllocatorListener* listener = nullptr;
};

/// One process that trains `model`. The outcome of a step that meets the same allocator state again comes
/// from the cache; results are the same with and without it.
class StepRunner : public StepPerformer {
 public:
  /// Builds the workload (weights). Throws InputError if not even that fits the card.
  StepRunner(const WorkloadModel& model, const ProcessSetup& setup);
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  using StepPerformer::run;
  StepOutcome run(const Point& point, const StepAdditions& additions) override;
  [[nodiscard]] bool knows(const Point& point) const override { return programs_.knows(point); }
  SimTime empty_cache() override;
  void reset_peak() override;
  void set_others(Bytes bytes) override;

  /// Frees everything that steps left behind (gradients, optimizer state, tensors that a failed step still
  /// holds unless `held_stay`), and empties the cache: the process is as it was built. Returns the time it
  /// took. Only with `use_step_cache` off.
  SimTime forget_steps(bool held_stay = false);

  /// How many steps came from the cache so far.
  [[nodiscard]] std::uint64_t cache_hits() const { return cache_hits_; }

  [[nodiscard]] const MemoryStats& stats() const override { return stats_; }

  /// The process's allocator. Only with `use_step_cache` off is it where the run is.
  [[nodiscard]] const CachingAllocator& allocator() const override { return process_.allocator(); }

  /// Bytes that the allocator could still reserve now: up to its limit, and free on the card.
  [[nodiscard]] Bytes available() const;

  [[nodiscard]] MemoryView view() const override;

 private:
  template <class Work>
  StepOutcome perform(StepCache::Action action, const Work& work);
  void serve_others();
  void catch_up();
  [[nodiscard]] bool worth_remembering() const;
  void remember(const StepCache::Action& action, const StepOutcome& outcome, const StatsChange& change);
  StepOutcome execute(const StepProgram& program, std::uint64_t shape, const StepAdditions& additions);
  ExecutedStep perform_program(const StepProgram& program, std::uint64_t shape,
                               const StepAdditions& additions);

  ProcessSetup setup_;
  SimulatedCard card_;
  SimulatedProcess process_;
  Bytes others_wanted_ = 0;
  Bytes others_ = 0;  ///< what they got
  MemoryStats stats_;
  StepExecutor::State built_;  ///< what lives before the first step
  StepPrograms programs_;
  StepCache cache_;
  std::optional<StepCache::StateId> state_;  ///< where the run is, if the cache knows it
  bool process_is_current_ = true;           ///< false: `process_` is behind, the cache knows the state
  std::size_t misses_in_a_row_ = 0;
  std::uint64_t cache_hits_ = 0;
};

}  // namespace vramlab
