// Memory estimates from published tables: what two tools of the field compute before a job runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/job_estimate.hpp"

namespace vramlab {

/// The estimate of a job queue (models/job_estimate.hpp) in its steps; MB = 2²⁰ B.
struct JobEstimateSteps {
  double base_mb = 0;      ///< of the table
  double batch_mb = 0;     ///< scaled to batch and length
  double required_mb = 0;  ///< with training
};
/// Throws InputError for an unknown type or size, and for a batch or length that is not above 0.
JobEstimateSteps estimate_job(const JobEstimate& job);

/// Throws InputError at `where` for a task that the table does not have.
void require_table_task(const std::string& task, const std::string& where);

/// What a batch of one sample of a task took, base and overhead included.
struct MeasuredSample {
  std::string task;
  double mb = 0;
};

/// Rows of a CSV file with header `task,mb`. Throws InputError for other columns, for tasks that the table
/// does not have, and for rows that take no more than the table's base and overhead.
std::vector<MeasuredSample> read_measured_samples(const std::filesystem::path& file);

/// The published estimate of a sampler for mixed tasks: a base of 0.15 GB and 0.12 GB a batch, and
/// for every image 0.28 GB forward and 0.35 GB backward times the multiplier of its task (T1 1, T2 1.85,
/// T3 1.87) and times the factor of its calibration. GB = 1,024 MB.
struct TaskEstimate {
  std::int64_t samples = 1;
  std::map<std::string, double> tasks{{"T1", 0.4}, {"T2", 0.3}, {"T3", 0.3}};  ///< shares, summing up to 1
  std::map<std::string, std::int64_t> images;  ///< of a sample, 1 to 1000; 1, 3 and 4 where none are given
  std::int64_t batch = 16;
  std::int64_t epochs = 1;
  bool training = true;
  std::vector<MeasuredSample> measured;  ///< 10 of a task calibrate it (TablePredictor)
  std::optional<Bytes> budget;           ///< for `safe_batch`
};

/// What was measured of a task beside what the table says; errors are mean relative ones.
struct TaskCalibration {
  std::int64_t samples = 0;
  double factor = 1;  ///< stays 1 below 10 samples
  double table_error = 0;
  double error = 0;  ///< with the factor
};
struct TaskEstimateResult {
  double per_batch_mb = 0;                             ///< a batch of average samples
  double peak_mb = 0;                                  ///< a batch of the largest samples
  std::int64_t batches = 0;                            ///< of all epochs
  std::map<std::string, std::int64_t> safe_batch;      ///< by task: samples within the budget, at most 256
  std::map<std::string, std::int64_t> images;          ///< of a sample, by task, as counted
  std::map<std::string, TaskCalibration> calibration;  ///< of tasks with measured samples
};
/// Throws InputError for unknown tasks, images out of range, or shares that do not sum up to 1.
TaskEstimateResult estimate_tasks(const TaskEstimate& tasks);

}  // namespace vramlab
