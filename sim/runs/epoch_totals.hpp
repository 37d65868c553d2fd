// What the batches of an epoch, or of a run, add up to.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/observation.hpp"
#include "policies/contract/batch_sessions.hpp"
#include "sim/runs/step_performer.hpp"

namespace vramlab {

/// One batch as it ran. References hold while a listener is told of it.
struct BatchRecord {
  std::int64_t number = 0;  ///< counted from 1, failed ones included
  std::int64_t epoch = 0;   ///< from 0
  SimTime start{0};
  SimTime duration{0};
  std::span<const SampleId> samples;
  BatchShape shape;
  std::int64_t padded_positions = 0;  ///< as collated
  PredictedMemory predicted;          ///< likely = 0: nothing was predicted
  Bytes allocated_before = 0;
  Bytes peak_allocated = 0;  ///< of this step
  Bytes peak_reserved = 0;
  Bytes wanted = 0;    ///< an OOM: the peak it would have had at least
  Bytes total = 0;     ///< what the program may use
  BatchLimits limits;  ///< that a tuner beside the composer had set; empty = none
  StepResult result = StepResult::ok;
  bool oversize = false;
  bool checkpointing = false;
  bool steps = false;          ///< the optimizer steps after it …
  std::int64_t effective = 0;  ///< … over this many samples
  double learning_rate_scale = 1;
  // Of a batch that did not fail, by task, from the declared series; empty if there is none.
  std::span<const double> task_losses;
  std::span<const double> gradient_norms;
  std::span<const double> task_weights;

  /// Mean of the weighted task losses over the samples; NaN if there is no series or the batch failed.
  [[nodiscard]] double loss() const;
  /// (predicted − taken) / taken, of what the batch took above what was allocated before it; NaN if nothing
  /// was predicted or it failed.
  [[nodiscard]] double prediction_error() const;
  /// Whether the batch took more than the prediction that was held against the budget.
  [[nodiscard]] bool unsafe() const;
};

/// Errors of predictions: each batch counts once, or for a task as often as it has samples of it.
struct ErrorSums {
  double weight = 0;
  double absolute = 0;
  double sign = 0;
  double unsafe = 0;

  void add(double error, bool is_unsafe, double times);
  void add(const ErrorSums& others);
  [[nodiscard]] double mean() const;  ///< of absolute relative errors; NaN if there are none
  [[nodiscard]] double bias() const;
  [[nodiscard]] double unsafe_share() const;
};

struct EpochTotals {
  std::int64_t batches = 0;  ///< that did not fail
  std::int64_t ooms = 0;
  std::int64_t samples = 0;  ///< trained on
  std::int64_t skipped = 0;  ///< left out of the epoch after an OOM
  std::int64_t oversize = 0;
  std::int64_t steps = 0;          ///< of the optimizer
  std::int64_t smallest_step = 0;  ///< samples; the last step of an epoch is not counted
  std::int64_t largest_step = 0;
  std::int64_t first_oom = 0;  ///< number of the first batch that failed; 0 = none
  std::int64_t tokens = 0;
  std::int64_t positions = 0;
  std::array<std::int64_t, kMostTasks> task_samples{};
  double usage = 0;           ///< sum over the batches of peak allocated over total
  std::int64_t failures = 0;  ///< for another reason than memory; the batches' samples are left out
  CardPeak peak_allocated;    ///< phases among it
  CardPeak peak_reserved;
  SimTime duration{0};
  SimTime oom_time{0};
  ErrorSums errors;
  std::array<ErrorSums, kMostTasks> task_errors{};

  /// Counts one batch. Its duration is not added: time passes between batches too.
  void add(const BatchRecord& batch);
  /// Counts what a batch or a phase took at most, of a card that offers `total`.
  void note_peak(Bytes allocated, Bytes reserved, Bytes total);
  /// Counts a step of the optimizer; `last` if the epoch's end made it.
  void add_step(std::int64_t step_samples, bool last);
  /// Counts all that a later run came to.
  void add(const EpochTotals& later);
};

}  // namespace vramlab
