#include "policies/predictors/table_predictor.hpp"

#include <algorithm>
#include <cmath>

#include "policies/contract/saved_state.hpp"

namespace vramlab {
namespace {

constexpr double kFixed = TaskTable::kBase + TaskTable::kOverhead;

double units(const BatchShape& batch, std::size_t task) {
  return static_cast<double>(batch.task_images[task] > 0 ? batch.task_images[task]
                                                         : batch.task_samples[task]);
}

}  // namespace

Bytes bytes_of(double value) {
  return static_cast<Bytes>(std::llround(std::clamp(value, 0.0, 1152921504606846976.0)));
}

TablePredictor::TablePredictor(const std::vector<std::string>& tasks, Form form, double image)
    : form_(form), image_(image) {
  for (const std::string& task : tasks) tasks_.push_back({.multiplier = TaskTable::multiplier(task)});
}

double TablePredictor::factor(std::size_t task) const {
  const auto calibrated = [](const Calibration& one) {
    return one.samples >= static_cast<double>(kSamplesToCalibrate) && one.by_table > 0;
  };
  if (form_ == Form::collapsing && !std::all_of(tasks_.begin(), tasks_.end(), calibrated)) return 1;
  return calibrated(tasks_[task]) ? tasks_[task].taken / tasks_[task].by_table : 1;
}

// The candidates of one batch, and the batches after it, ask for the same few again and again.
double TablePredictor::power(std::size_t task, const BatchShape& batch) const {
  const auto samples = std::max<std::int64_t>(batch.samples, 1);
  const std::int64_t count = batch.task_samples[task];
  const auto compute = [&] {
    return std::pow(tasks_[task].multiplier / static_cast<double>(samples), static_cast<double>(count));
  };
  if (samples > kKeptPowers || count > kKeptPowers) return compute();
  powers_.resize(tasks_.size() * kKeptPowers * (kKeptPowers + 1), -1);
  const std::size_t first = (task * kKeptPowers + static_cast<std::size_t>(samples - 1)) * (kKeptPowers + 1);
  double& kept = powers_[first + static_cast<std::size_t>(count)];
  if (kept < 0) kept = compute();
  return kept;
}

PredictedMemory TablePredictor::predict(const BatchShape& batch) const {
  double sum = kFixed;
  double collapse = 1;
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    const double multiplier = tasks_[task].multiplier;
    const double images = units(batch, task) * image_ * factor(task);
    if (form_ == Form::sum) {
      sum += images * multiplier;
    } else {
      sum += images;
      collapse *= power(task, batch);
    }
  }
  const Bytes bytes = std::max<Bytes>(
      1, bytes_of(sum * collapse * static_cast<double>(1_GiB)));  // 0 would mean: no prediction
  return {bytes, bytes};
}

void TablePredictor::learn(const BatchShape& batch, Bytes rise) {
  const auto share_of = [&](std::size_t task) {
    return units(batch, task) * image_ * tasks_[task].multiplier;
  };
  double by_table = 0;
  for (std::size_t task = 0; task < tasks_.size(); ++task) by_table += share_of(task);
  const double taken = std::max(0.0, static_cast<double>(rise) / static_cast<double>(1_GiB) - kFixed);
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    Calibration& one = tasks_[task];
    const double share = share_of(task);
    one.samples += static_cast<double>(batch.task_samples[task]);
    one.by_table += share;
    one.taken += by_table > 0 ? taken * share / by_table : 0;
  }
}

std::vector<double> TablePredictor::save() const {
  std::vector<double> state;
  for (const Calibration& one : tasks_) state.insert(state.end(), {one.samples, one.by_table, one.taken});
  return state;
}

void TablePredictor::restore(std::span<const double> state) {
  require_state(state, 3 * tasks_.size());
  auto from = state.begin();
  for (Calibration& one : tasks_) {
    for (double* figure : {&one.samples, &one.by_table, &one.taken}) *figure = *from++;
  }
}

}  // namespace vramlab
