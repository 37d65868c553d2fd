// Runs the steps of one workload on a pretended card, and remembers what a repeated one did.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/workload_model.hpp"
#include "sim/memory/memory_stats.hpp"
#include "sim/runs/step_executor.hpp"
#include "sim/runs/step_performer.hpp"

namespace vramlab {

/// A step, and every counter before and after it; after it with peaks reset before it, so that other counters
/// can repeat the change (MemoryStats::repeat).
struct CountedStep {
  StepOutcome outcome;
  MemoryStats before;
  MemoryStats after;
};

/// Performs `work`, a step on `allocator`, counts it, and adds its peaks to the outcome that `work` gives.
template <class Work>
CountedStep count_step(Allocator& allocator, const Work& work) {
  allocator.reset_peak_stats();
  CountedStep step{.before = allocator.stats()};
  step.outcome = work();
  step.after = allocator.stats();
  step.outcome.peak_allocated = static_cast<Bytes>(step.after.allocated_bytes.all().peak);
  step.outcome.peak_reserved = static_cast<Bytes>(step.after.reserved_bytes.all().peak);
  return step;
}

/// Performs `program` as `executor` does on `allocator`, with what the step needs beside it: that is there
/// before its first allocation, and what it leaves is allocated behind its last.
ExecutedStep run_with_additions(Allocator& allocator, StepExecutor& executor, const StepProgram& program,
                                std::uint64_t shape, const StepAdditions& additions);

/// What a policy may see of `stats`, for a program that may use `total` bytes of a device on which nobody
/// holds `device_free` bytes.
MemoryView view_of(const MemoryStats& stats, Bytes total, Bytes device_free);

/// What can be read after step `iteration` of one process a card, with the memory that `rule` says.
Observation reading_of(std::vector<MemoryView> cards, std::int64_t iteration, SimTime now, CardsRule rule);

/// The time of `program` that `step` got through: all of it or, where it failed, the share of its work that
/// came before the failing allocation.
SimTime time_done(const StepProgram& program, const ExecutedStep& step);

/// The step program that is due at each point: a model's answers, each asked for once.
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

  /// The next step at `point`. Where processes share this, each counts its own visits of the point: the step
  /// after `visits` earlier ones. Stays valid until the next call.
  const Program& next(const Point& point, std::optional<std::size_t> visits = {});

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

/// States of a process that were met, and where each action leads from each of them.
///
/// States are told apart by their full canonical description, never by a hash alone.
class StepCache {
 public:
  using StateId = std::uint32_t;

  /// An action, and what else its effect depends on: memory of other processes, faults.
  struct Action {
    std::uint64_t key = 0;
    Bytes others = 0;
    Bytes besides = 0;
    Bytes left = 0;
    friend auto operator<=>(const Action&, const Action&) = default;
  };

  struct Edge {
    StateId to = 0;
    CountedStep step;
  };

  /// The id of the state that `process` is in, remembered from now on.
  StateId enter(const SimulatedProcess& process);

  /// What `action` does in state `from`, if it was seen. The pointer holds until the next non-const call.
  [[nodiscard]] const Edge* find(StateId from, const Action& action) const {
    const auto edge = nodes_[from].edges.find(action);
    return edge == nodes_[from].edges.end() ? nullptr : &edge->second;
  }

  void insert(StateId from, const Action& action, Edge edge) {
    nodes_[from].edges.insert_or_assign(action, std::move(edge));
  }

  [[nodiscard]] const SimulatedProcess::State& state(StateId id) const { return nodes_[id].saved; }

  /// Number of states remembered; the caller clears the cache when it grows too large.
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  void clear() {
    nodes_.clear();
    ids_.clear();
  }

 private:
  struct Node {
    SimulatedProcess::State saved;
    std::map<Action, Edge> edges;
  };
  struct HashWords {
    std::size_t operator()(const std::vector<std::uint64_t>& words) const;
  };

  std::vector<Node> nodes_;
  std::unordered_map<std::vector<std::uint64_t>, StateId, HashWords> ids_;
};

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

/// What a process performs.
struct ProcessWork {
  StepProgram built;                     ///< what it allocates first
  const WorkloadModel* model = nullptr;  ///< its steps; null = those that `run_program` is given
};

/// One process that trains `model`. The outcome of a step that meets the same allocator state again comes
/// from the cache; results are the same with and without it.
class StepRunner : public StepPerformer {
 public:
  /// Builds the workload (weights). Throws InputError if not even that fits the card.
  StepRunner(const WorkloadModel& model, const ProcessSetup& setup);
  StepRunner(const ProcessWork& work, const ProcessSetup& setup);
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  using StepPerformer::run;
  StepOutcome run(const Point& point, const StepAdditions& additions) override;
  /// Only with `use_step_cache` off, as `forget_steps` and `use_share`.
  StepOutcome run_program(const StepProgram& program, std::uint64_t shape,
                          const StepAdditions& additions) override;
  [[nodiscard]] bool knows(const Point& point) const override { return programs_ && programs_->knows(point); }
  SimTime empty_cache() override;
  void reset_peak() override;
  void set_others(Bytes bytes) override;
  SimTime forget_steps(bool held_stay) override;
  void use_share(double share) override;

  /// How many steps came from the cache so far.
  [[nodiscard]] std::uint64_t cache_hits() const { return cache_hits_; }

  [[nodiscard]] const MemoryStats& stats() const override { return stats_; }

  /// The process's allocator. Only with `use_step_cache` off is it where the run is.
  [[nodiscard]] const CachingAllocator& allocator() const override { return process_.allocator(); }

  [[nodiscard]] Bytes available() const override;
  [[nodiscard]] MemoryView view() const override;

 private:
  template <class Work>
  StepOutcome perform(StepCache::Action action, const Work& work);
  void serve_others();
  void catch_up();
  void remember(const StepCache::Action& action, const CountedStep& step);
  template <class Work>
  SimTime empty_cache_after(const Work& work);
  StepOutcome execute(const StepProgram& program, std::uint64_t shape, const StepAdditions& additions);

  ProcessSetup setup_;
  SimulatedCard card_;
  SimulatedProcess process_;
  Bytes others_wanted_ = 0;
  Bytes others_ = 0;  ///< what they got
  MemoryStats stats_;
  StepExecutor::State built_;             ///< what lives before the first step
  std::optional<StepPrograms> programs_;  ///< of a model's points, where there is a model
  StepCache cache_;
  std::optional<StepCache::StateId> state_;  ///< where the run is, if the cache knows it
  bool process_is_current_ = true;           ///< false: `process_` is behind, the cache knows the state
  std::size_t misses_in_a_row_ = 0;
  std::uint64_t cache_hits_ = 0;
};

}  // namespace vramlab
