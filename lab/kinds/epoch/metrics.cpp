#include <cmath>

#include "lab/kinds/epoch/spec.hpp"
#include "lab/metric.hpp"

namespace vramlab {
namespace {

using enum Better;

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

/// What the rows are computed from.
struct Facts {
  const EpochSetup& setup;
  const EpochRun& run;
  std::int64_t misfits = 0;
  bool timed = true;
  const std::vector<Metric>* oracle = nullptr;
  const EpochTotals& totals = run.totals;
  double seconds = timed ? to_seconds(totals.duration) : std::nan("");
  double batches = static_cast<double>(totals.batches);
  double whole = static_cast<double>(setup.samples.size()) * static_cast<double>(setup.epochs);

  // Without times there are no rates.
  [[nodiscard]] double per_second(double amount) const {
    return timed ? part_of(amount, seconds) : std::nan("");
  }
  [[nodiscard]] double untrained() const { return whole - static_cast<double>(totals.samples); }
  [[nodiscard]] double misfit_samples() const {
    return static_cast<double>(misfits) * static_cast<double>(setup.epochs);
  }
  [[nodiscard]] bool is_tuned() const { return setup.tuning && !run.final_point.empty(); }
  [[nodiscard]] std::optional<double> final_limit(BatchTuning::Moves limit, double unit) const {
    if (!is_tuned() || setup.tuning->moves != limit) return std::nullopt;
    return unit * static_cast<double>(run.final_point.front());
  }
  [[nodiscard]] double budget_use() const { return part_of(totals.usage, batches); }
  // What ranks those that left out equally much; a rate says nothing about samples that were never reached.
  [[nodiscard]] std::optional<double> regret() const {
    if (oracle == nullptr) return std::nullopt;
    const Figures best{*oracle};
    const double own = timed ? per_second(static_cast<double>(totals.samples)) : budget_use();
    const double share = part_of(static_cast<double>(totals.samples), best["samples"]);
    return 1 - part_of(own * share, best[timed ? "samples_per_s" : "budget_use"]);
  }
  [[nodiscard]] bool finished() const {
    return run.ended_early.empty() && totals.samples > 0 && untrained() <= misfit_samples();
  }
};

// A batch is one forward and backward pass; "taken" is its peak less what was allocated before.
const std::vector<MetricRow<Facts>>& rows() {
  static const std::vector<MetricRow<Facts>> rows{
      {{"finished",
        "finished",
        "count",
        more,
        "1 if the run came to its end and left out no sample but those that fit nowhere; only such a policy "
        "can "
        "be best",
        {},
        kTruth},
       [](const Facts& f) { return f.finished() ? 1.0 : 0.0; }},
      {{"batches", "batches", "count", neither, "batches that did not fail"},
       [](const Facts& f) { return f.batches; }},
      {{"samples", "samples", "count", neither, "samples trained on, over all epochs"},
       [](const Facts& f) { return f.totals.samples; }},
      {{"untrained_samples", "left out", "count", less,
        "samples that were left out after an OOM, or never reached",
        "samples of the data · epochs − samples"},
       [](const Facts& f) { return f.untrained(); }},
      {{"set_aside_samples", "set aside", "count", neither,
        "samples that the empty card does not hold even alone and that are not part of the data: "
        "`set_aside`"},
       [](const Facts& f) { return f.setup.set_aside; }},
      {{"misfits", "fit nowhere", "count", neither,
        "those that alone run out of memory in a fresh process; 0 where nothing was left out",
        "such samples of the data · epochs"},
       [](const Facts& f) { return f.misfit_samples(); }},
      {{"ooms", "OOMs", "count", less, "batches that ran out of memory"},
       [](const Facts& f) { return f.totals.ooms; }},
      {{"first_oom", "first OOM", "count", neither, "number of the first of them, 0 if there was none"},
       [](const Facts& f) { return f.totals.first_oom; }},
      {{"alloc_retries", "retries", "count", less, "allocations that first had to release the whole cache"},
       [](const Facts& f) { return f.run.alloc_retries; }},
      {{"oversize_batches", "oversize", "count", neither,
        "single samples that alone were predicted over budget and ran alone"},
       [](const Facts& f) { return f.totals.oversize; }},
      {{"optimizer_steps", "steps", "count", neither,
        "effective batches, the smaller one at the end of an epoch included"},
       [](const Facts& f) { return f.totals.steps; }},
      {{"smallest_step", "smallest step", "count", neither,
        "samples of the smallest effective batch; the last of an epoch is not counted"},
       [](const Facts& f) { return f.totals.smallest_step; }},
      {{"largest_step", "largest step", "count", neither,
        "samples of the largest effective batch; the last of an epoch is not counted"},
       [](const Facts& f) { return f.totals.largest_step; }},
      {{"duration_s", "duration", "s", less, "simulated time"}, [](const Facts& f) { return f.seconds; }},
      {{"samples_per_s", "samples/s", "1/s", more, "samples trained on per second of simulated time",
        "samples / duration"},
       [](const Facts& f) { return f.per_second(static_cast<double>(f.totals.samples)); }},
      {{"tokens_per_s", "tokens/s", "1/s", more, "tokens of those samples, without padding, per second",
        "Σ tokens / duration"},
       [](const Facts& f) { return f.per_second(static_cast<double>(f.totals.tokens)); }},
      {{"oom_time_share", "time in OOMs", "share", less, "share of the time spent in batches that failed",
        "Σ duration of failed batches / duration"},
       [](const Facts& f) { return f.per_second(to_seconds(f.totals.oom_time)); }},
      {{"budget_use", "budget used", "share", more,
        "mean over the batches of the peak of allocated bytes as a share of total",
        "Σ peak allocated / total / batches"},
       [](const Facts& f) { return f.budget_use(); }},
      {{"peak_allocated_ratio", "peak", "share", neither, "highest allocated bytes of the run",
        "max allocated / total"},
       [](const Facts& f) { return share_of(f.totals.peak_allocated); }},
      {{"peak_reserved_ratio", "peak reserved", "share", neither, "highest reserved bytes of the run",
        "max reserved / total", kReservedShare},
       [](const Facts& f) { return share_of(f.totals.peak_reserved); }},
      {{"padding_share", "padding", "share", less, "share of all positions of all batches that is padding",
        "1 − Σ tokens / Σ positions"},
       [](const Facts& f) {
         return part_of(static_cast<double>(f.totals.positions - f.totals.tokens),
                        static_cast<double>(f.totals.positions));
       }},
      {{"predictor_error", "error", "share", less,
        "mean size of the predictor's error; none where nothing is predicted",
        "Σ |predicted − taken| / taken / batches", ValueRange{.low = 0}},
       [](const Facts& f) { return f.totals.errors.mean(); }},
      {{"predictor_bias", "bias", "share", neither, "the same with its sign: above 0 too much was predicted",
        "Σ (predicted − taken) / taken / batches", ValueRange{.low = -1}},
       [](const Facts& f) { return f.totals.errors.bias(); }},
      {{"predictor_unsafe_share", "unsafe", "share", less,
        "share of the batches that took more than the prediction held against the budget"},
       [](const Facts& f) { return f.totals.errors.unsafe_share(); }},
      {{"adjustments", "changes", "count", neither,
        "changes of what a batch may take, by a tuner beside the composer; only where there is one"},
       [](const Facts& f) {
         return f.is_tuned() ? std::optional{static_cast<double>(f.run.adjustments.size())} : std::nullopt;
       }},
      {{"final_budget_bytes", "budget", "bytes", neither,
        "where the tuner left the budget; only where it moves one"},
       [](const Facts& f) { return f.final_limit(BatchTuning::Moves::budget, static_cast<double>(1_MiB)); }},
      {{"final_batch_size", "most samples", "count", neither,
        "where the tuner left the samples that a batch may have; only where it moves them"},
       [](const Facts& f) { return f.final_limit(BatchTuning::Moves::batch_size, 1); }},
      {{"task_share", "task shift", "share", less,
        "largest difference, over the tasks, between a task's share of the gradient weight and of the data",
        "max |gradient share − data share|"},
       [](const Facts& f) { return largest_shift(f.setup, f.run); }},
      {{"regret", "regret", "share", less,
        "how far the policy stays behind the oracle; only where a tuner moves a limit of batches. Without "
        "times it is that of `budget_use`",
        "1 − samples_per_s · samples / the same of the oracle"},
       [](const Facts& f) { return f.regret(); }},
  };
  return rows;
}

}  // namespace

std::vector<Metric> epoch_metrics(const EpochSetup& setup, const EpochRun& run, std::int64_t misfits,
                                  bool timed, const std::vector<Metric>* oracle) {
  return measure(rows(),
                 Facts{.setup = setup, .run = run, .misfits = misfits, .timed = timed, .oracle = oracle});
}

const MetricTable& epoch_metric_table() {
  static const MetricTable table = table_of(rows());
  return table;
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
