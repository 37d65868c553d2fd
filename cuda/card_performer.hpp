// Performs a run's steps on a real card: the same allocator, session and loop, over real memory.
#pragma once

#include <memory>
#include <optional>

#include "cuda/card.hpp"
#include "cuda/card_memory.hpp"
#include "cuda/cuda_segments.hpp"
#include "cuda/memory_holder.hpp"
#include "sim/runs/step_executor.hpp"
#include "sim/runs/step_performer.hpp"
#include "sim/runs/step_runner.hpp"

namespace vramlab {

/// One process that trains on the card. Every block is written and read in full (CardMemory); each step that
/// succeeds takes at least its program's duration, by a kernel that keeps the card busy for what is left of
/// it. Times are those of the machine's clock.
///
/// Where the scenario's card is smaller than the real one, the difference is held here and not used. What
/// others hold is held by a second process (MemoryHolder), whose context is part of it: less than a context
/// nobody can hold.
class CardPerformer : public StepPerformer {
 public:
  /// Opens the card and builds the workload (weights). Throws InputError if there is no card, if it is too
  /// small for the scenario, or if the weights do not fit.
  CardPerformer(const WorkloadModel& model, const ProcessSetup& setup);

  using StepPerformer::run;
  /// Throws InternalError for additions, which a training run refuses before its first step.
  StepOutcome run(const Point& point, const StepAdditions& additions) override;
  [[nodiscard]] bool knows(const Point& point) const override { return programs_.knows(point); }
  SimTime empty_cache() override;
  void reset_peak() override { stats_.reset_peaks(); }
  void set_others(Bytes bytes) override;
  [[nodiscard]] const MemoryStats& stats() const override { return stats_; }
  [[nodiscard]] MemoryView view() const override;
  [[nodiscard]] const CachingAllocator& allocator() const override { return allocator_; }

 private:
  void make_room_for_scenario();
  void serve_others();
  void compute_until(SimTime end);

  ProcessSetup setup_;
  CardInfo card_;
  CardBallast ballast_;  ///< makes the card as small as the scenario's
  CardMemory memory_;
  CudaSegments segments_;
  CachingAllocator allocator_;
  UsedAllocator used_;
  StepExecutor executor_;
  StepPrograms programs_;
  MemoryStats stats_;  ///< with the peaks that the policy resets
  std::unique_ptr<MemoryHolder> holder_;
  Bytes holder_context_ = 0;
  Bytes others_wanted_ = 0;
  Bytes others_ = 0;  ///< what they got
};

}  // namespace vramlab
