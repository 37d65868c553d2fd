#include "lab/model/table_estimate.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/error.hpp"
#include "policies/composers/oom_guardian.hpp"
#include "policies/predictors/table_predictor.hpp"

namespace vramlab {
namespace {

constexpr double kMbInGb = 1024;

const TaskTable::Task& find_task(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskTable::Task& task : TaskTable::kTasks) {
    if (task.name == name) return task;
    names.emplace_back(task.name);
  }
  throw InputError("--tasks", '"' + name + "\" is not a task." + suggest_name(name, names));
}

double sample_gb(const TaskTable::Task& task, bool training) {
  return task.images * (TaskTable::kForward + (training ? TaskTable::kBackward : 0)) * task.multiplier;
}

void need_positive(std::int64_t value, const char* option) {
  if (value < 1 || value > 1'000'000'000) {
    throw InputError(option, fmt::format("{} is not between 1 and 1000000000.", value));
  }
}

}  // namespace

JobEstimateSteps estimate_job(const JobEstimate& job) {
  need_positive(job.batch, "--batch");
  need_positive(job.sequence, "--seq");
  const auto megabytes = [](JobEstimate step, bool training) {
    step.training = training;
    return static_cast<double>(estimated_bytes(step, "--type and --size")) / static_cast<double>(1_MiB);
  };
  return {.base_mb = megabytes({.type = job.type, .size = job.size}, false),
          .batch_mb = megabytes(job, false),
          .required_mb = megabytes(job, job.training)};
}

TaskEstimateResult estimate_tasks(const TaskEstimate& tasks) {
  need_positive(tasks.samples, "--samples");
  need_positive(tasks.batch, "--batch");
  need_positive(tasks.epochs, "--epochs");
  double shares = 0;
  double mean = 0;
  double largest = 0;
  for (const auto& [name, share] : tasks.tasks) {
    if (!(share >= 0 && share <= 1))
      throw InputError("--tasks", fmt::format("the share of {} is not within 0 to 1.", name));
    const double sample = sample_gb(find_task(name), tasks.training);
    shares += share;
    mean += share * sample;
    if (share > 0) largest = std::max(largest, sample);
  }
  if (std::abs(shares - 1) > 1e-6) {
    throw InputError("--tasks", fmt::format("the shares sum up to {:g}; they must sum up to 1.", shares));
  }
  const auto of_batch = [&](double sample) {
    return kMbInGb * (TaskTable::kBase + TaskTable::kOverhead + static_cast<double>(tasks.batch) * sample);
  };
  const std::int64_t batches = (tasks.samples + tasks.batch - 1) / tasks.batch * tasks.epochs;
  TaskEstimateResult result{of_batch(mean), of_batch(largest), batches, {}};
  if (!tasks.budget) return result;
  const double budget_gb = static_cast<double>(*tasks.budget) / static_cast<double>(1_GiB);
  for (const auto& [name, share] : tasks.tasks) {
    const double sample = sample_gb(find_task(name), tasks.training);
    result.safe_batch[name] = safe_batch_size([&](std::int64_t samples) {
      return TaskTable::kBase + TaskTable::kOverhead + static_cast<double>(samples) * sample <= budget_gb;
    });
  }
  return result;
}

}  // namespace vramlab
