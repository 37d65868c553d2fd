// What the host of a composer keeps of an epoch: the samples that wait, the effective batch, the gradient's
// shares.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/sample.hpp"

namespace vramlab {

/// Where an epoch stands. With it, and the same data set, the order goes on as it would have.
struct EpochPosition {
  std::uint64_t seed = 1;
  std::int64_t epoch = 0;         ///< from 0
  std::size_t position = 0;       ///< samples of the order that were looked at
  std::vector<SampleId> waiting;  ///< those of them that were not trained on yet, oldest first

  friend bool operator==(const EpochPosition&, const EpochPosition&) = default;
};

/// Names a moment of an epoch, for random choices that a restart repeats.
struct EpochStamp {
  std::uint64_t seed = 1;
  std::int64_t epoch = 0;
  std::uint64_t position = 0;
};

/// Hands out the samples of one epoch. The host takes what a composer answered and puts back what failed, so
/// that no composer can lose or double a sample.
class Candidates {
 public:
  /// Epoch `epoch` of a data set of `size` samples, from its beginning; in the data set's order unless
  /// `shuffle` is set.
  Candidates(std::size_t size, std::uint64_t seed, std::int64_t epoch, bool shuffle);

  /// The same from where it stood. Throws InputError if `from` is not of this data set.
  Candidates(std::size_t size, const EpochPosition& from, bool shuffle);

  /// The `count` oldest samples still waiting, or all; looks further into the order as needed. Valid until
  /// the next call.
  std::span<const SampleId> look(std::size_t count);

  /// Samples of the epoch that still wait, looked at or not.
  [[nodiscard]] std::size_t left() const { return left_; }

  /// Throws InternalError, and takes nothing, if one of `batch` does not wait or was not looked at.
  void take(std::span<const SampleId> batch);

  /// Puts samples that were taken in front of all others.
  void put_back(std::span<const SampleId> batch);

  [[nodiscard]] EpochPosition position() const;
  [[nodiscard]] EpochStamp stamp() const { return {seed_, epoch_, next_}; }

 private:
  enum class State : std::uint8_t { unseen, waiting, taken };
  void drop_taken();

  std::uint64_t seed_;
  std::int64_t epoch_;
  std::vector<SampleId> order_;
  std::vector<State> states_;
  std::size_t next_ = 0;           ///< of `order_`
  std::vector<SampleId> waiting_;  ///< with some that were taken since
  std::size_t taken_ = 0;          ///< how many
  std::size_t left_;
};

// Gradient accumulation: how many micro-batches make a step of the optimizer.

/// How an effective batch is put together.
struct AccumulationRule {
  enum class Kind : std::uint8_t {
    exact,    ///< every effective batch has exactly the target's samples; the loss is divided by their count
    adaptive  ///< the original: a number of micro-batches that follows memory use, so that the effective
              ///< batch drifts; the loss is the mean over a micro-batch, divided by their number
  };
  Kind kind = Kind::exact;
  std::int64_t batch_size = 16;  ///< of a micro-batch, which the adaptive kind starts from
};

/// Counts the micro-batches of one step after another.
class Accumulation {
 public:
  static constexpr std::int64_t kMostMicroSteps = 8;

  /// `target`: samples of an effective batch; 0 = each batch is one, whatever the rule.
  Accumulation(AccumulationRule rule, std::int64_t target);

  /// Samples that may still go into this effective batch; at least 1.
  [[nodiscard]] std::int64_t room() const;

  /// Counts a micro-batch of `samples` whose peak took `usage` of the memory. True if the optimizer steps
  /// after it.
  bool add(std::int64_t samples, double usage);

  /// The epoch is over: the optimizer steps with what is there.
  void close();

  [[nodiscard]] std::int64_t samples() const { return samples_; }          ///< in this effective batch so far
  [[nodiscard]] std::int64_t micro_steps() const { return micro_steps_; }  ///< that the next step will have
  [[nodiscard]] std::int64_t done() const { return done_; }                ///< of them so far

  /// Goes on in the middle of an effective batch.
  void restore(std::int64_t samples, std::int64_t done, std::int64_t micro_steps);

 private:
  AccumulationRule rule_;
  std::int64_t target_;
  std::int64_t micro_steps_;
  std::int64_t samples_ = 0;
  std::int64_t done_ = 0;
};

// How much each task counts in the loss, and what share of the gradient it really gets.

/// Factors on gradient and learning rate for a batch that is not the base size, as the original had them.
double gradient_scale(double base_samples, double samples);       ///< base / current
double learning_rate_scale(double base_samples, double samples);  ///< sqrt(current / base)

/// GradNorm-style balance: weight ∝ (mean norm / norm)^alpha, renormalised so that the weights sum up to the
/// number of tasks. A task whose norm is 0 counts as one of mean norm. Empty for empty norms.
std::vector<double> balanced_weights(std::span<const double> norms, double alpha);

/// What samples of each task count for, added up over an epoch or a run.
class GradientShares {
 public:
  explicit GradientShares(std::vector<double> weights) : weights_(std::move(weights)) {}

  void set_weights(std::vector<double> weights) { weights_ = std::move(weights); }
  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }

  /// A micro-batch of the effective batch under way.
  void add(const BatchShape& micro_batch);

  /// The optimizer steps. `by_count`: the loss is the sum over all samples divided by their number; else it
  /// is the mean over each micro-batch, divided by the number of micro-batches. `scale` multiplies the
  /// gradient.
  void step(bool by_count, double scale = 1);

  /// Each task's share of all gradient weight so far; 0 for all before the first step.
  [[nodiscard]] std::vector<double> shares() const;

  /// Sums by task, and those of the step under way, as numbers.
  [[nodiscard]] std::vector<double> save() const;
  void restore(std::span<const double> state);

 private:
  std::vector<double> weights_;
  std::array<double, kMostTasks> sums_{};
  std::array<double, kMostTasks> samples_{};  ///< of the step under way
  std::array<double, kMostTasks> means_{};    ///< … each divided by its micro-batch's samples
  double micro_batches_ = 0;
};

}  // namespace vramlab
