#include <cmath>

#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/training/view.hpp"

namespace vramlab {
namespace {

double part_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

double share_of(const CardPeak& peak) {
  return part_of(static_cast<double>(peak.bytes), static_cast<double>(peak.total));
}

/// Shares of each task, by number.
struct TaskShares {
  std::vector<double> data;
  std::vector<double> trained;
};

TaskShares shares_of(const EpochSetup& setup, const EpochRun& run) {
  std::vector<std::int64_t> counts(setup.tasks.size(), 0);
  for (const Sample& sample : setup.samples) ++counts[sample.task];
  TaskShares shares;
  for (std::size_t task = 0; task < counts.size(); ++task) {
    shares.data.push_back(
        part_of(static_cast<double>(counts[task]), static_cast<double>(setup.samples.size())));
    shares.trained.push_back(
        part_of(static_cast<double>(run.totals.task_samples[task]), static_cast<double>(run.totals.samples)));
  }
  return shares;
}

// The task that is furthest from its share of the data.
double largest_shift(const EpochSetup& setup, const EpochRun& run) {
  const TaskShares shares = shares_of(setup, run);
  double largest = 0;
  for (std::size_t task = 0; task < run.gradient_shares.size() && task < shares.data.size(); ++task) {
    largest = std::max(largest, std::abs(run.gradient_shares[task] - shares.data[task]));
  }
  return largest;
}

}  // namespace

std::vector<Metric> epoch_metrics(const EpochSetup& setup, const EpochRun& run) {
  const EpochTotals& totals = run.totals;
  const double seconds = to_seconds(totals.duration);
  const auto batches = static_cast<double>(totals.batches);
  const auto whole = static_cast<double>(setup.samples.size()) * static_cast<double>(setup.epochs);
  return {
      {"batches", batches},
      {"samples", static_cast<double>(totals.samples)},
      {"untrained_samples", whole - static_cast<double>(totals.samples)},
      {"ooms", static_cast<double>(totals.ooms)},
      {"first_oom", static_cast<double>(totals.first_oom)},
      {"alloc_retries", static_cast<double>(run.alloc_retries)},
      {"oversize_batches", static_cast<double>(totals.oversize)},
      {"optimizer_steps", static_cast<double>(totals.steps)},
      {"smallest_step", static_cast<double>(totals.smallest_step)},
      {"largest_step", static_cast<double>(totals.largest_step)},
      {"duration_s", seconds},
      {"samples_per_s", part_of(static_cast<double>(totals.samples), seconds)},
      {"tokens_per_s", part_of(static_cast<double>(totals.tokens), seconds)},
      {"oom_time_share", part_of(to_seconds(totals.oom_time), seconds)},
      {"budget_use", part_of(totals.usage, batches)},
      {"peak_allocated_ratio", share_of(totals.peak_allocated)},
      {"peak_reserved_ratio", share_of(totals.peak_reserved)},
      {"padding_share",
       part_of(static_cast<double>(totals.positions - totals.tokens), static_cast<double>(totals.positions))},
      {"predictor_error", totals.errors.mean()},
      {"predictor_bias", totals.errors.bias()},
      {"predictor_unsafe_share", totals.errors.unsafe_share()},
      {"task_share", largest_shift(setup, run)},
  };
}

std::vector<std::string> epoch_metric_names() {
  std::vector<std::string> names;
  const EpochSetup nothing;  // a temporary here makes g++ 12 warn wrongly about uninitialised members
  for (const Metric& metric : epoch_metrics(nothing, {})) names.push_back(metric.name);
  return names;
}

Json task_json(const EpochSetup& setup, const EpochRun& run) {
  const TaskShares shares = shares_of(setup, run);
  Json json = Json::object();
  for (std::size_t task = 0; task < setup.tasks.size(); ++task) {
    const ErrorSums& errors = run.totals.task_errors[task];
    Json& one = json[setup.tasks[task]];
    one["data_share"] = number_json(shares.data[task]);
    one["sample_share"] = number_json(shares.trained[task]);
    one["gradient_share"] = number_json(run.gradient_shares[task]);
    one["predictor_error"] = number_json(errors.mean());
    one["predictor_bias"] = number_json(errors.bias());
    one["predictor_unsafe_share"] = number_json(errors.unsafe_share());
  }
  return json;
}

}  // namespace vramlab
