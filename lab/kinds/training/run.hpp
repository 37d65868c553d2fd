// Runs the policies of a training scenario side by side, measures each against the best fixed choice, and
// tells what happened in a run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/best.hpp"
#include "lab/kinds/training/spec.hpp"
#include "lab/metric.hpp"
#include "lab/page/drawing.hpp"
#include "recordings/snapshot/writer.hpp"
#include "report/output_file.hpp"
#include "sim/runs/batch_search_loop.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// The `objective` of the runs that a run is compared with, where there are such.
struct Rivals {
  std::optional<double> undisturbed;  ///< of the same policy without faults, phases and other processes
  std::optional<double> oracle;       ///< of the best safe fixed choice
  std::optional<bool> on_front;       ///< whether no other run is better in one respect and as good in all
};

/// All metrics of a run in a fixed order: `disturbance_cost` and `regret` where it has these rivals, those of
/// a search where one came before it (null = none).
std::vector<Metric> training_metrics(const TrainingScenario& scenario, const TrainingRun& run,
                                     const Rivals& rivals = {}, const BatchSearchRun* search = nullptr);

/// What they mean, those of comparisons included.
const MetricTable& training_metric_table();

/// Sums over the steps that did not fail.
struct WorkDone {
  double samples = 0;
  double pixels = 0;
  double ranks = 0;  ///< of `rank_of`, divided by the planned steps
};

/// What a step at `point` is worth where the size comes first: the size (`lq`, or the first parameter that is
/// not the batch) plus batch / (batch + 1), so that no batch makes up for a smaller size.
double rank_of(const ParameterSpace& space, const Point& point);

/// Work done by `objective`, from `work` and the time of all steps.
double objective_of(Objective objective, const WorkDone& work, double seconds);

/// Whether it is a rate.
bool counts_time(Objective objective);

/// Whether the steps of a scenario have times: those of its model, or of a real card.
bool has_times(const TrainingScenario& scenario);

/// Whether, for want of times, work done is not what ranks its policies, but the mean peak is.
bool ranks_by_memory(const TrainingScenario& scenario);

/// Whether `peak` is at most target plus margin of `total`.
bool within_target(const Target& target, Bytes peak, Bytes total);

/// What one policy did.
struct PolicyResult : PolicyFigures {
  TrainingRun run;
  std::optional<BatchSearchRun> search{};  ///< that came before it

  [[nodiscard]] const BatchSearchRun* search_before() const { return search ? &*search : nullptr; }
};

/// The rank of a run beside others of the same scenario: those that end early last, then those with an OOM,
/// then those that go above target plus margin in the last quarter (the metric `inside_target`), then by what
/// they lose: regret, or less of the objective.
std::vector<double> training_rank(bool ended_early, double ooms, double inside_target, double lost_work);

/// How a policy stands, without a remark.
Standing training_standing(const TrainingScenario& scenario, const PolicyResult& result);

/// All policies of a scenario, in its order; the oracle, where there is one, comes last.
struct Comparison {
  std::vector<PolicyResult> policies;

  [[nodiscard]] auto begin() const { return policies.begin(); }
  [[nodiscard]] auto end() const { return policies.end(); }

  /// The result with that label; null if there is none.
  [[nodiscard]] const PolicyResult* find(const std::string& label) const;
};

/// Runs the policy of one entry.
PolicyResult run_policy(const TrainingScenario& scenario, const PolicyEntry& entry);

/// Runs all policies and the oracle, and adds each one's regret. Without any safe fixed choice there is
/// no oracle and no regret. `labels` names the policies to run; empty = all.
/// Throws InputError for a label that is not in the scenario.
Comparison compare_policies(const TrainingScenario& scenario, const std::vector<std::string>& labels = {});

/// Said beside figures of regret of which one is below 0.
inline constexpr const char* kBelowOracle =
    "Regret below 0: the policy went above target plus margin, risked steps that fail, or moved while "
    "faults, "
    "phases or other processes changed what was free; the oracle does none of these.";

/// The best fixed choice: of all points within bounds that never fail and never use more than target plus
/// margin, the one that does most work by the scenario's objective; among equals the larger last
/// parameter. Found by simulating, not by formula. Empty if none of the points tried is safe; ranges with
/// more than 1,024 values of the other parameters are tried in strides.
std::optional<PolicyResult> find_oracle(const TrainingScenario& scenario);

// What happened around an expectation that does not hold, in a few lines.

/// The iterations around the event that the expectation is about: the failed step, the change, the highest
/// peak.
std::vector<std::string> iterations_around(const Expectation& expectation, const TrainingScenario& scenario,
                                           const TrainingRun& run);

// What the allocator did in a run, as a snapshot with the steps marked in it and as a map. The history of a
// long run does not fit memory: it goes by twice, and is written the second time.

/// Sees a run for the first time: how much there will be, where, and how it ends.
class RunSurvey : public RunWatcher {
 public:
  void on_event(const AllocatorEvent& event) override;
  void step_begins(std::int64_t /*iteration*/, const Point& /*point*/, SimTime /*now*/) override { ++steps_; }
  void step_ends(StepResult /*result*/, SimTime /*now*/) override {}
  void run_ends(const CachingAllocator& allocator) override;

  [[nodiscard]] const SegmentSurvey& segments() const { return segments_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] const AllocatorSettings& settings() const { return settings_; }
  /// Throws InternalError before the run has ended.
  [[nodiscard]] const TorchSnapshot& end() const;

 private:
  SegmentSurvey segments_;
  std::uint64_t steps_ = 0;
  AllocatorSettings settings_;
  std::optional<TorchSnapshot> end_;
};

/// Sees the run that `survey` saw once more, and writes its snapshot, makes its map, or both. The entries of
/// a step carry the simulated time at which it began; each step is an annotation with its iteration and
/// parameters.
class RunHistory : public RunWatcher {
 public:
  /// `file`: the snapshot; empty = none. Of the history it has the newest `max_entries`, 0 = all; a map,
  /// which begins with an empty allocator, is made if that is all. Throws InputError if the file cannot be
  /// written, or has no room there.
  RunHistory(const RunSurvey& survey, ParameterSpace space, const std::string& file, bool maps,
             std::uint64_t max_entries);
  ~RunHistory() override;
  RunHistory(const RunHistory&) = delete;
  RunHistory& operator=(const RunHistory&) = delete;

  void on_event(const AllocatorEvent& event) override;
  void step_begins(std::int64_t iteration, const Point& point, SimTime now) override;
  void step_ends(StepResult result, SimTime now) override;
  void run_ends(const CachingAllocator& /*allocator*/) override {}

  /// Puts the file into its place; `steps` are those of the run. Throws InputError if that cannot be.
  void finish(const std::vector<IterationRecord>& steps);

  /// Once, where a map was asked for; with the steps in it, of very many some.
  std::optional<SegmentMap> map();

  /// Entries that are not in it.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  [[nodiscard]] std::string name_of(std::int64_t iteration, const Point& point) const;

  const RunSurvey& survey_;
  ParameterSpace space_;
  std::uint64_t lost_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t steps_ = 0;
  std::int64_t time_us_ = 0;
  std::uint64_t first_at_time_ = 0;  ///< number of the first entry that carries the time of the last one
  std::int64_t last_time_us_ = -1;   ///< that time
  std::vector<SegmentMap::Mark> marks_;
  std::unique_ptr<SegmentMapMaker> maker_;
  std::unique_ptr<OutputFile> output_;
  std::unique_ptr<SnapshotWriter> writer_;
};

/// Keeps what a run tells of itself, for a run that cannot be made twice: that of a real card.
class RunRecorder : public RunWatcher {
 public:
  void on_event(const AllocatorEvent& event) override { happened_.push_back({.event = event}); }
  void step_begins(std::int64_t iteration, const Point& point, SimTime now) override {
    happened_.push_back({What::begins, {}, iteration, point, now});
  }
  void step_ends(StepResult result, SimTime now) override {
    happened_.push_back({What::ends, {}, 0, {}, now, result});
  }
  void run_ends(const CachingAllocator& allocator) override {
    replay(survey_);
    survey_.run_ends(allocator);
  }

  [[nodiscard]] const RunSurvey& survey() const { return survey_; }
  /// Tells `watcher` the same, but the end.
  void replay(RunWatcher& watcher) const;

 private:
  enum class What : std::uint8_t { event, begins, ends };
  struct Happened {
    What what = What::event;
    AllocatorEvent event{};
    std::int64_t iteration = 0;
    Point point{};
    SimTime now{0};
    StepResult result = StepResult::ok;
  };
  std::vector<Happened> happened_;
  RunSurvey survey_;
};

}  // namespace vramlab
