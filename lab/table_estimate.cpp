#include "lab/table_estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

// P3.1: MB at batch 8 and length 512.
struct JobBase {
  const char* type;
  std::vector<std::pair<const char*, double>> sizes;
};
const std::vector<JobBase>& job_bases() {
  static const std::vector<JobBase> bases{
      {"transformer", {{"small", 2000}, {"medium", 4000}, {"large", 8000}, {"xlarge", 16000}}},
      {"cnn", {{"small", 1000}, {"medium", 2000}, {"large", 4000}}},
      {"rnn", {{"small", 1500}, {"medium", 3000}, {"large", 6000}}}};
  return bases;
}
constexpr double kTableBatch = 8;
constexpr double kTableLength = 512;
constexpr double kTraining = 2.5;

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

JobEstimateResult estimate_job(const JobEstimate& job) {
  need_positive(job.batch, "--batch");
  need_positive(job.seq, "--seq");
  std::vector<std::string> types;
  for (const JobBase& base : job_bases()) {
    types.emplace_back(base.type);
    if (job.type != base.type) continue;
    std::vector<std::string> sizes;
    for (const auto& [size, mb] : base.sizes) {
      sizes.emplace_back(size);
      if (job.size != size) continue;
      JobEstimateResult result{.base_mb = mb};
      result.batch_mb = mb * static_cast<double>(job.batch) / kTableBatch;
      if (job.type == "transformer") result.batch_mb *= static_cast<double>(job.seq) / kTableLength;
      result.required_mb = result.batch_mb * (job.training ? kTraining : 1);
      return result;
    }
    throw InputError("--size",
                     '"' + job.size + "\" is no size of a " + job.type + "." + suggest_name(job.size, sizes));
  }
  throw InputError("--type", '"' + job.type + "\" is not in the table." + suggest_name(job.type, types));
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
