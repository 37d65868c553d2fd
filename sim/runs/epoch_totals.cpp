#include "sim/runs/epoch_totals.hpp"

#include <algorithm>
#include <cmath>

namespace vramlab {

double BatchRecord::loss() const {
  if (task_losses.empty()) return std::nan("");
  double sum = 0;
  for (std::size_t task = 0; task < task_losses.size(); ++task) {
    sum += static_cast<double>(shape.task_samples[task]) * task_weights[task] * task_losses[task];
  }
  return sum / static_cast<double>(shape.samples);
}

double BatchRecord::prediction_error() const {
  if (result != StepResult::ok || predicted.likely == 0) return std::nan("");
  const double taken = static_cast<double>(peak_allocated - allocated_before);
  return taken > 0 ? static_cast<double>(predicted.likely) / taken - 1 : std::nan("");
}

bool BatchRecord::unsafe() const { return peak_allocated - allocated_before > predicted.at_most; }

void ErrorSums::add(double error, bool is_unsafe, double times) {
  add({times, times * std::abs(error), times * error, is_unsafe ? times : 0});
}
void ErrorSums::add(const ErrorSums& others) {
  weight += others.weight;
  absolute += others.absolute;
  sign += others.sign;
  unsafe += others.unsafe;
}
double ErrorSums::mean() const { return weight > 0 ? absolute / weight : std::nan(""); }
double ErrorSums::bias() const { return weight > 0 ? sign / weight : std::nan(""); }
double ErrorSums::unsafe_share() const { return weight > 0 ? unsafe / weight : std::nan(""); }

void EpochTotals::add(const BatchRecord& batch) {
  note_peak(batch.peak_allocated, batch.peak_reserved, batch.total);
  if (batch.result == StepResult::error) {
    ++failures;
    return;
  }
  if (batch.result == StepResult::oom) {
    if (ooms++ == 0) first_oom = batch.number;
    oom_time += batch.duration;
    return;
  }
  ++batches;
  samples += batch.shape.samples;
  oversize += batch.oversize ? 1 : 0;
  tokens += batch.shape.tokens;
  positions += batch.padded_positions;
  usage += static_cast<double>(batch.peak_allocated) / static_cast<double>(batch.total);
  const double error = batch.prediction_error();
  if (!std::isnan(error)) errors.add(error, batch.unsafe(), 1);
  for (std::size_t task = 0; task < kMostTasks; ++task) {
    const std::int64_t count = batch.shape.task_samples[task];
    task_samples[task] += count;
    if (!std::isnan(error) && count > 0) {
      task_errors[task].add(error, batch.unsafe(), static_cast<double>(count));
    }
  }
}

void EpochTotals::note_peak(Bytes allocated, Bytes reserved, Bytes total) {
  peak_allocated.note(allocated, total);
  peak_reserved.note(reserved, total);
}

void EpochTotals::add_step(std::int64_t step_samples, bool last) {
  ++steps;
  if (last) return;
  largest_step = std::max(largest_step, step_samples);
  smallest_step = smallest_step == 0 ? step_samples : std::min(smallest_step, step_samples);
}

void EpochTotals::add(const EpochTotals& later) {
  for (const auto count : {&EpochTotals::batches, &EpochTotals::ooms, &EpochTotals::samples,
                           &EpochTotals::skipped, &EpochTotals::oversize, &EpochTotals::steps,
                           &EpochTotals::tokens, &EpochTotals::positions, &EpochTotals::failures}) {
    this->*count += later.*count;
  }
  largest_step = std::max(largest_step, later.largest_step);
  if (smallest_step == 0 || (later.smallest_step != 0 && later.smallest_step < smallest_step)) {
    smallest_step = later.smallest_step;
  }
  if (first_oom == 0) first_oom = later.first_oom;
  usage += later.usage;
  peak_allocated.note(later.peak_allocated.bytes, later.peak_allocated.total);
  peak_reserved.note(later.peak_reserved.bytes, later.peak_reserved.total);
  duration += later.duration;
  oom_time += later.oom_time;
  errors.add(later.errors);
  for (std::size_t task = 0; task < kMostTasks; ++task) {
    task_samples[task] += later.task_samples[task];
    task_errors[task].add(later.task_errors[task]);
  }
}

}  // namespace vramlab
