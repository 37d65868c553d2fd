// Performs a run's steps on a real card: the same allocator, session and loop, over real memory.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "cuda/card.hpp"
#include "cuda/card_memory.hpp"
#include "cuda/cuda_segments.hpp"
#include "cuda/memory_holder.hpp"
#include "sim/runs/step_executor.hpp"
#include "sim/runs/step_performer.hpp"
#include "sim/runs/step_runner.hpp"

namespace vramlab {

/// A card of this program as the performers on it share it: they take turns, and each finds on its turn what
/// it would find on a card that it had alone.
class SharedCard {
 public:
  /// Opens the visible card number `device` at the first turn. A step waits for `time_scale`, in [0, 1], of
  /// what its memory work left of its duration.
  explicit SharedCard(double time_scale = 1, int device = 0) : time_scale_(time_scale), device_(device) {}
  SharedCard(const SharedCard&) = delete;
  SharedCard& operator=(const SharedCard&) = delete;
  virtual ~SharedCard();

  /// Opened by then. Throws InputError if there is no card.
  virtual const CardInfo& info();

  /// Whether the turn was another's. It is `performer`'s from now on, null for nobody's.
  bool give_turn(const void* performer) { return std::exchange(turn_, performer) != performer; }
  [[nodiscard]] bool is_turn_of(const void* performer) const { return turn_ == performer; }

  /// Holds so much here that as many whole pages are free as `bytes` have, if the card has them. Throws
  /// InputError if it has not even those of `needed`.
  virtual void leave_free(Bytes bytes, Bytes needed);

  /// Lets a second process hold `bytes` for others, its context among them. Returns what they got.
  virtual Bytes hold_for_others(Bytes bytes);

  [[nodiscard]] double time_scale() const { return time_scale_; }
  [[nodiscard]] int device() const { return device_; }

 private:
  double time_scale_;
  int device_;
  std::optional<CardInfo> info_;
  CardBallast ballast_;
  std::unique_ptr<MemoryHolder> holder_;
  Bytes holder_context_ = 0;
  const void* turn_ = nullptr;
};

/// Real memory, a caching allocator on it, and what performs steps with both. Every block is used in full.
struct CardProcess {
  /// The card must be open.
  explicit CardProcess(const AllocatorOptions& options)
      : timed(segments),
        modelled(timed),
        allocator(modelled, options),
        used(allocator, memory),
        executor(used) {
    memory.stream(kDefaultStream);
  }

  /// Throws InternalError if a byte did not hold what was written to it.
  ExecutedStep run(const StepProgram& program, std::uint64_t shape, const StepAdditions& additions) {
    const ExecutedStep done = run_with_additions(used, executor, program, shape, additions);
    memory.require_intact();
    return done;
  }

  CardMemory memory;
  CudaSegments segments;
  TimedSegments timed;
  ModelledSegments modelled;
  CachingAllocator allocator;
  UsedAllocator used;
  StepExecutor executor;
};

/// One process that trains on the card. Every block is written and read in full (CardMemory); each step that
/// succeeds takes at least its program's duration, by a kernel that keeps the card busy for what is left of
/// it. What counts is, as in the simulator, the program's time, whatever a `time_scale` left out of the wait,
/// and that of the driver's calls, which is measured. Writing and reading blocks counts for nothing: no
/// training does that.
///
/// Where the scenario's card is smaller than the real one, the difference is held and not used. What others
/// hold is held by a second process (MemoryHolder), whose context is part of it: less than a context nobody
/// can hold.
///
/// Several performers of one program have allocators of their own in one context. Each sees the card as if
/// it were alone there, as where a phase has processes of its own; the real one must have room for all.
class CardPerformer : public StepPerformer {
 public:
  /// Opens the card and builds the workload (weights). Throws InputError if there is no card, if it is too
  /// small for the scenario, or if the weights do not fit.
  CardPerformer(const ProcessWork& work, const ProcessSetup& setup, std::shared_ptr<SharedCard> card);
  CardPerformer(const CardPerformer&) = delete;
  CardPerformer& operator=(const CardPerformer&) = delete;
  ~CardPerformer() override;

  using StepPerformer::run;
  StepOutcome run(const Point& point, const StepAdditions& additions) override;
  StepOutcome run_program(const StepProgram& program, std::uint64_t shape,
                          const StepAdditions& additions) override;
  [[nodiscard]] bool knows(const Point& point) const override { return programs_ && programs_->knows(point); }
  SimTime empty_cache() override;
  SimTime forget_steps(bool held_stay) override;
  void use_share(double share) override;
  void reset_peak() override { stats_.reset_peaks(); }
  void set_others(Bytes bytes) override;
  [[nodiscard]] const MemoryStats& stats() const override { return stats_; }
  [[nodiscard]] Bytes available() const override;
  [[nodiscard]] MemoryView view() const override;
  [[nodiscard]] const CachingAllocator& allocator() const override { return process_.allocator; }

 private:
  void take_turn() const;
  template <class Work>
  StepOutcome perform(const Work& work);
  template <class Work>
  SimTime empty_cache_after(const Work& work);
  void compute(SimTime left);

  ProcessSetup setup_;
  std::shared_ptr<SharedCard> card_;
  CardProcess process_;
  StepExecutor::State built_;             ///< what lives before the first step
  std::optional<StepPrograms> programs_;  ///< of a model's points, where there is a model
  MemoryStats stats_;                     ///< with the peaks that the policy resets
  Bytes others_wanted_ = 0;
  Bytes others_ = 0;  ///< what they got
};

}  // namespace vramlab
