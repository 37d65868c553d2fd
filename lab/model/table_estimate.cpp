#include "lab/model/table_estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "core/error.hpp"
#include "policies/composers/oom_guardian.hpp"
#include "policies/predictors/table_predictor.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

constexpr double kMbInGb = 1024;

constexpr double kFixedGb = TaskTable::kBase + TaskTable::kOverhead;
constexpr std::int64_t kMostImages = 1000;

std::vector<std::string> table_tasks() {
  std::vector<std::string> names;
  for (const TaskTable::Task& task : TaskTable::kTasks) names.emplace_back(task.name);
  return names;
}

std::size_t find_task(const std::string& name, const std::string& where) {
  const std::vector<std::string> names = table_tasks();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw InputError(where, '"' + name + "\" is not a task." + suggest_name(name, names));
  }
  return static_cast<std::size_t>(found - names.begin());
}

void need_positive(std::int64_t value, const char* option) {
  if (value < 1 || value > 1'000'000'000) {
    throw InputError(option, fmt::format("{} is not between 1 and 1000000000.", value));
  }
}

// The table with what was measured: what one sample of each of its tasks takes.
class SampleTable {
 public:
  explicit SampleTable(const TaskEstimate& asked)
      : image_(TaskTable::kForward + (asked.training ? TaskTable::kBackward : 0)),
        predictor_(table_tasks(), TablePredictor::Form::sum, image_) {
    std::ranges::transform(TaskTable::kTasks, images_.begin(), &TaskTable::Task::images);
    for (const auto& [name, images] : asked.images) {
      if (images < 1 || images > kMostImages) {
        throw InputError("--images",
                         fmt::format("{} of {} is not between 1 and {}.", images, name, kMostImages));
      }
      images_[find_task(name, "--images")] = images;
    }
    for (const MeasuredSample& sample : asked.measured) {
      const std::size_t task = find_task(sample.task, "--calibration");
      BatchShape one;
      one.add({.task = static_cast<std::uint32_t>(task), .images = static_cast<std::int32_t>(images_[task])});
      predictor_.learn(one, bytes_of(sample.mb * static_cast<double>(1_MiB)));
    }
  }

  [[nodiscard]] std::int64_t images(std::size_t task) const { return images_[task]; }
  [[nodiscard]] double factor(std::size_t task) const { return predictor_.factor(task); }
  [[nodiscard]] double by_table(std::size_t task) const {
    return static_cast<double>(images_[task]) * image_ * TaskTable::kTasks[task].multiplier;
  }
  [[nodiscard]] double sample_gb(std::size_t task) const { return by_table(task) * factor(task); }

 private:
  double image_;  // GB
  std::array<std::int64_t, TaskTable::kTasks.size()> images_{};
  TablePredictor predictor_;
};

std::map<std::string, TaskCalibration> calibrations(const TaskEstimate& asked, const SampleTable& table) {
  std::map<std::string, TaskCalibration> all;
  const auto error = [](double gb, double mb) { return std::abs((kFixedGb + gb) * kMbInGb / mb - 1); };
  for (const MeasuredSample& sample : asked.measured) {
    const std::size_t task = find_task(sample.task, "--calibration");
    TaskCalibration& one = all[sample.task];
    ++one.samples;
    one.factor = table.factor(task);
    one.table_error += error(table.by_table(task), sample.mb);
    one.error += error(table.sample_gb(task), sample.mb);
  }
  for (auto& [name, one] : all) {
    one.table_error /= static_cast<double>(one.samples);
    one.error /= static_cast<double>(one.samples);
  }
  return all;
}

}  // namespace

JobEstimateSteps estimate_job(const JobEstimate& job) {
  need_positive(job.batch, "--batch");
  need_positive(job.sequence, "--seq");
  const auto megabytes = [](JobEstimate step, bool training) {
    step.training = training;
    return static_cast<double>(estimated_bytes(step, "--type and --size")) / static_cast<double>(1_MiB);
  };
  return {.base_mb = megabytes({.type = job.type, .size = job.size, .faithful = job.faithful}, false),
          .batch_mb = megabytes(job, false),
          .required_mb = megabytes(job, job.training)};
}

void require_table_task(const std::string& task, const std::string& where) { find_task(task, where); }

std::vector<MeasuredSample> read_measured_samples(const std::filesystem::path& file) {
  const CsvTable table{file};
  if (!std::ranges::is_permutation(table.columns(), std::vector<std::string>{"task", "mb"})) {
    throw InputError(file.string() + ":1", "must be the header task,mb.");
  }
  const std::vector<std::string> names = table_tasks();
  std::vector<MeasuredSample> samples;
  std::vector<Problem> problems;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    try {
      samples.push_back({std::string{table.text(row, "task")}, table.number(row, "mb")});
      const auto& [task, mb] = samples.back();
      if (std::ranges::find(names, task) == names.end()) {
        table.wrong(row, "task", "is not a task." + suggest_name(task, names));
      }
      if (mb <= kFixedGb * kMbInGb) {
        table.wrong(
            row, "mb",
            fmt::format("is not above {:g}, what model and batch take by the table. Give the whole peak of "
                        "a batch of one sample.",
                        kFixedGb * kMbInGb));
      }
    } catch (const InputError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return samples;
}

TaskEstimateResult estimate_tasks(const TaskEstimate& tasks) {
  need_positive(tasks.samples, "--samples");
  need_positive(tasks.batch, "--batch");
  need_positive(tasks.epochs, "--epochs");
  const SampleTable table{tasks};
  const auto of_batch = [](std::int64_t samples, double sample) {
    return kMbInGb * (kFixedGb + static_cast<double>(samples) * sample);
  };
  TaskEstimateResult result;
  double shares = 0;
  double mean = 0;
  double largest = 0;
  for (const auto& [name, share] : tasks.tasks) {
    if (!(share >= 0 && share <= 1))
      throw InputError("--tasks", fmt::format("the share of {} is not within 0 to 1.", name));
    const std::size_t task = find_task(name, "--tasks");
    const double sample = table.sample_gb(task);
    shares += share;
    mean += share * sample;
    if (share > 0) largest = std::max(largest, sample);
    result.images[name] = table.images(task);
    if (!tasks.budget) continue;
    const double budget_mb = static_cast<double>(*tasks.budget) / static_cast<double>(1_MiB);
    result.safe_batch[name] =
        safe_batch_size([&](std::int64_t samples) { return of_batch(samples, sample) <= budget_mb; });
  }
  if (std::abs(shares - 1) > 1e-6) {
    throw InputError("--tasks", fmt::format("the shares sum up to {:g}; they must sum up to 1.", shares));
  }
  result.per_batch_mb = of_batch(tasks.batch, mean);
  result.peak_mb = of_batch(tasks.batch, largest);
  result.batches = (tasks.samples + tasks.batch - 1) / tasks.batch * tasks.epochs;
  result.calibration = calibrations(tasks, table);
  return result;
}

}  // namespace vramlab
