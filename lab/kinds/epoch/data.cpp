#include "lab/kinds/epoch/data.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/random.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {

std::vector<Sample> draw_samples(const std::vector<TaskSort>& tasks, std::int64_t count,
                                 const Outliers& outliers, std::int64_t tokens_per_image,
                                 std::uint64_t seed) {
  Random random{seed};
  std::vector<Sample> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const TaskSort& task = random.one_of(tasks, &TaskSort::share);
    Sample sample{.task = static_cast<std::uint32_t>(&task - tasks.data())};
    sample.images = task.images;
    sample.length = random.between(task.shortest, task.longest);
    if (outliers.every > 0 && i % outliers.every == outliers.every / 2) sample.length *= outliers.times;
    sample.tokens = std::max<std::int64_t>(1, sample.length + tokens_per_image * sample.images);
    samples.push_back(sample);
  }
  return samples;
}

std::vector<Sample> read_lengths(const std::filesystem::path& file, const std::string& column,
                                 std::int64_t most, std::int64_t count) {
  const CsvTable table{file};
  std::vector<Sample> samples;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (count > 0 && static_cast<std::int64_t>(row) == count) break;
    const double tokens = table.number(row, column);
    if (tokens < 1 || tokens > 1e9 || tokens != std::floor(tokens)) {
      table.wrong(row, column, "is not a whole number of tokens from 1 to 1000000000.");
    }
    const std::int64_t length = std::min(most, static_cast<std::int64_t>(tokens));
    samples.push_back({.length = length, .tokens = length});
  }
  if (samples.empty()) throw InputError(file.string(), "has no lines.");
  return samples;
}

SeriesFile read_series(const std::filesystem::path& file, const std::vector<std::string>& tasks) {
  const CsvTable table{file};
  SeriesFile series{{std::vector<std::vector<double>>(tasks.size())},
                    {std::vector<std::vector<double>>(tasks.size())}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto found = std::find(tasks.begin(), tasks.end(), table.text(row, "task"));
    if (found == tasks.end()) table.wrong(row, "task", "is not a task of the data set.");
    const auto task = static_cast<std::size_t>(found - tasks.begin());
    series.losses.by_task[task].push_back(table.number(row, "loss"));
    series.gradient_norms.by_task[task].push_back(table.number(row, "gradient_norm"));
  }
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    if (!series.losses.by_task[task].empty()) continue;
    throw InputError(file.string(), "has no line for the task " + tasks[task] + ".");
  }
  return series;
}

}  // namespace vramlab
