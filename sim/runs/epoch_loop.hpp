// Epochs over a data set: batch after batch, composed by a policy and run on the cards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/workload_model.hpp"
#include "policies/contract/batch_sessions.hpp"
#include "policies/contract/epoch_books.hpp"
#include "policies/contract/session.hpp"
#include "sim/runs/card_runner.hpp"
#include "sim/runs/epoch_totals.hpp"
#include "sim/runs/stepped_run.hpp"

namespace vramlab {

/// Figures that only a real run could supply, declared instead: value n of a task is for the n-th batch, and
/// the last one for all later ones.
struct DeclaredSeries {
  std::vector<std::vector<double>> by_task;  ///< empty = there is none

  /// The values for batch `number` (from 0), by task; empty if there is no series.
  [[nodiscard]] std::vector<double> at(std::int64_t number) const;
};

/// How the loss is made up.
struct LossRules {
  std::vector<double> weights;  ///< by task
  bool balance = false;         ///< GradNorm-style, from the declared gradient norms
  double alpha = 1.5;
  bool scale_gradient = false;  ///< the original's gradient × base / current
  bool scale_learning_rate = false;
};

/// Where a run stands between two batches. A run that starts from it hands out the same samples in the same
/// order as the one that was stopped; the process is a new one.
struct EpochState : ComposerState {
  std::int64_t batches = 0;  ///< run so far, failed ones included
  std::int64_t steps = 0;    ///< of the optimizer, so far
  std::vector<double> gradients;
  SimTime time{0};     ///< simulated so far
  EpochTotals totals;  ///< of the epoch that has begun, so far
  std::string tuner;   ///< its session, as text; empty = there is none, or it saves nothing
};

/// Is told of every batch; nothing of a batch is kept otherwise.
class BatchListener {
 public:
  virtual ~BatchListener() = default;
  virtual void batch_ends(const BatchRecord& batch) = 0;
  virtual void epoch_ends(std::int64_t epoch, const EpochTotals& totals) = 0;
};

/// A step over samples of its own that is run at intervals of batches (validation, for one).
struct EpochPhase {
  std::string name;
  std::int64_t every = 1;             ///< after each batch whose number is a multiple of it
  std::int64_t samples = 1;           ///< how many, the first of the data set; no more than it has
  const BatchModel* model = nullptr;  ///< null = the setup's; another one has processes of its own
};

/// A tuner beside the composer. It is asked after every batch, and told of every phase in the composer's own
/// process, about a space of one parameter: what a batch may take. What it says holds from the next batch on.
/// For the tuner a peak lasts until it resets it, whatever the composer is told of single batches.
struct BatchTuning {
  enum class Moves : std::uint8_t {
    budget,     ///< ComposerQuestion::budget, in MiB; for composers that obey one
    batch_size  ///< samples that a batch may have
  };
  Moves moves = Moves::budget;
  ParameterSpace space;                          ///< of one parameter
  Point start;                                   ///< within it
  std::function<std::unique_ptr<Tuner>()> make;  ///< a new one for each process
};

/// Everything a run is made of but its policy.
struct EpochSetup {
  const BatchModel* model = nullptr;
  const BatchModel* checkpointed = nullptr;  ///< the same with activation checkpointing; null = not recorded
  std::vector<std::string> tasks;            ///< at most kMostTasks
  std::vector<Sample> samples;               ///< at least one
  std::int64_t set_aside = 0;                ///< that fit nowhere and are not among them
  std::int64_t epochs = 1;
  std::int64_t target_batch = 0;  ///< samples of an effective batch; 0 = each batch is one
  std::uint64_t seed = 1;
  bool shuffle = true;
  bool packs = false;  ///< the collator packs rows
  ProcessSetup process;
  std::vector<ProcessSetup> more_cards;  ///< each performs every batch, too, on samples of the same shape
  std::vector<OtherProcess> others;
  std::vector<EpochPhase> phases;
  Faults faults;  ///< of the batch with that number; without delayed changes and restarts
  std::optional<BatchTuning> tuning;
  LossRules loss;
  DeclaredSeries losses;
  DeclaredSeries gradient_norms;
  std::int64_t max_steps = 0;       ///< batches, over all runs, after which it is given up; 0 = no limit
  std::int64_t stop_after = 0;      ///< batches of this run; 0 = to the end
  std::optional<EpochState> start;  ///< where an earlier run stood
  BatchListener* listener = nullptr;
  MakePerformer make_performer{};  ///< empty = StepRunners, on pretended cards
};

struct EpochRun {
  EpochTotals totals;
  std::vector<double> gradient_shares;  ///< by task
  std::vector<Statistic> statistics;
  std::vector<Adjustment> adjustments;  ///< of a tuner; `iteration` is the number of the batch before it
  Point final_point;                    ///< where it left its parameter; empty without one
  std::uint64_t alloc_retries = 0;      ///< on all cards
  PhaseCounts phases;
  FaultCounts faults;
  EpochState state;         ///< to go on from
  std::string ended_early;  ///< why it was given up before its end; empty if it was not
  bool complete = false;    ///< all epochs are over: there is nothing to go on with
};

/// Takes out of `setup.samples` what its cards do not hold even when they are empty: a sample alone, in the
/// second step of a process of its own (the first may leave an optimizer's state behind), under either model.
/// Of samples with equal task and images a longer one is taken to need no less. Returns how many those were.
/// Throws InputError if the weights alone do not fit.
std::int64_t take_out_misfits(EpochSetup& setup);

/// Runs `setup` with `composer`. Deterministic on pretended cards. Throws InputError if the weights alone do
/// not fit, or `start` is not of this data set or policy. A tuner that does not take what an equal one saved
/// ends the run early; one that saves nothing begins anew at its start after a restart.
EpochRun run_epochs(const EpochSetup& setup, Composer& composer);

}  // namespace vramlab
