// How much each task counts in the loss, and what share of the gradient it really gets (P2.6).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/sample.hpp"

namespace vramlab {

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
