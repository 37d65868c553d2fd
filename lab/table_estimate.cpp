#include "lab/table_estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

// P2.1, in GB.
constexpr double kBase = 0.15;
constexpr double kBatch = 0.12;
constexpr double kForward = 0.28;
constexpr double kBackward = 0.35;
constexpr double kMbInGb = 1024;
struct Task {
  const char* name;
  double factor;
  double images;
};
constexpr std::array<Task, 3> kTasks{{{"T1", 1.0, 1}, {"T2", 1.85, 3}, {"T3", 1.87, 4}}};

const Task& find_task(const std::string& name) {
  const auto found =
      std::find_if(kTasks.begin(), kTasks.end(), [&](const Task& task) { return task.name == name; });
  if (found != kTasks.end()) return *found;
  throw InputError("--tasks", '"' + name + "\" is no task." + suggest_name(name, {"T1", "T2", "T3"}));
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
  const double per_image = kForward + (tasks.training ? kBackward : 0);
  double shares = 0;
  double mean = 0;
  double largest = 0;
  for (const auto& [name, share] : tasks.tasks) {
    if (!(share >= 0 && share <= 1))
      throw InputError("--tasks", fmt::format("the share of {} is not within 0 to 1.", name));
    const Task& task = find_task(name);
    const double sample = task.images * per_image * task.factor;
    shares += share;
    mean += share * sample;
    if (share > 0) largest = std::max(largest, sample);
  }
  if (std::abs(shares - 1) > 1e-6) {
    throw InputError("--tasks", fmt::format("the shares sum up to {:g}; they must sum up to 1.", shares));
  }
  const auto of_batch = [&](double sample) {
    return kMbInGb * (kBase + kBatch + static_cast<double>(tasks.batch) * sample);
  };
  const std::int64_t batches = (tasks.samples + tasks.batch - 1) / tasks.batch * tasks.epochs;
  return {of_batch(mean), of_batch(largest), batches};
}

}  // namespace vramlab
