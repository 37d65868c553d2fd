#include "policies/loss_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "policies/memory_predictor.hpp"

namespace vramlab {

double gradient_scale(double base_samples, double samples) { return base_samples / samples; }
double learning_rate_scale(double base_samples, double samples) { return std::sqrt(samples / base_samples); }

std::vector<double> balanced_weights(std::span<const double> norms, double alpha) {
  const double mean = std::accumulate(norms.begin(), norms.end(), 0.0) /
                      static_cast<double>(std::max<std::size_t>(norms.size(), 1));
  std::vector<double> weights;
  for (const double norm : norms) weights.push_back(norm > 0 ? std::pow(mean / norm, alpha) : 1);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight *= static_cast<double>(norms.size()) / sum;
  return weights;
}

void GradientShares::add(const BatchShape& micro_batch) {
  for (std::size_t task = 0; task < weights_.size(); ++task) {
    const auto samples = static_cast<double>(micro_batch.task_samples[task]);
    samples_[task] += samples;
    means_[task] += samples / static_cast<double>(micro_batch.samples);
  }
  micro_batches_ += 1;
}

void GradientShares::step(bool by_count, double scale) {
  const double samples = std::accumulate(samples_.begin(), samples_.end(), 0.0);
  for (std::size_t task = 0; task < weights_.size() && samples > 0; ++task) {
    const double share = by_count ? samples_[task] / samples : means_[task] / micro_batches_;
    sums_[task] += share * weights_[task] * scale;
  }
  samples_ = {};
  means_ = {};
  micro_batches_ = 0;
}

std::vector<double> GradientShares::shares() const {
  const double sum = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  std::vector<double> shares;
  for (std::size_t task = 0; task < weights_.size(); ++task)
    shares.push_back(sum > 0 ? sums_[task] / sum : 0);
  return shares;
}

std::vector<double> GradientShares::save() const {
  std::vector<double> state{micro_batches_};
  for (const auto* values : {&sums_, &samples_, &means_})
    state.insert(state.end(), values->begin(), values->end());
  return state;
}

void GradientShares::restore(std::span<const double> state) {
  require_state(state, 1 + 3 * kMostTasks);
  micro_batches_ = state[0];
  for (std::size_t task = 0; task < kMostTasks; ++task) {
    sums_[task] = state[1 + task];
    samples_[task] = state[1 + kMostTasks + task];
    means_[task] = state[1 + 2 * kMostTasks + task];
  }
}

}  // namespace vramlab
