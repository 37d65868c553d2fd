// Memory estimates from published tables: what two tools of the field compute before a job runs.
#pragma once

#include <cstdint>
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

/// The published estimate of a sampler for mixed tasks: a base of 0.15 GB and 0.12 GB a batch, and
/// for every image 0.28 GB forward and 0.35 GB backward times the factor of its task (T1 1, T2 1.85, T3 1.87;
/// 1, 3 and 4 images). GB = 1,024 MB.
struct TaskEstimate {
  std::int64_t samples = 1;
  std::map<std::string, double> tasks{{"T1", 0.4}, {"T2", 0.3}, {"T3", 0.3}};  ///< shares, summing up to 1
  std::int64_t batch = 16;
  std::int64_t epochs = 1;
  bool training = true;
  std::optional<Bytes> budget;  ///< for `safe_batch`
};
struct TaskEstimateResult {
  double per_batch_mb = 0;                         ///< a batch of average samples
  double peak_mb = 0;                              ///< a batch of the largest samples
  std::int64_t batches = 0;                        ///< of all epochs
  std::map<std::string, std::int64_t> safe_batch;  ///< by task: samples within the budget, at most 256
};
/// Throws InputError for unknown tasks or shares that do not sum up to 1.
TaskEstimateResult estimate_tasks(const TaskEstimate& tasks);

}  // namespace vramlab
