#include <algorithm>
#include <cmath>

#include "lab/kinds/search/spec.hpp"

namespace vramlab {
namespace {

using enum Better;

double as_double(std::int64_t number) { return static_cast<double>(number); }

/// What the rows are computed from. The answer is the number of the last bucket, where lengths are largest;
/// costs are sums over all.
struct Facts {
  explicit Facts(const SearchResult& result)
      : last(result.buckets.back()), epoch(result.epoch), planned(result.planned) {
    for (const BucketResult& bucket : result.buckets) {
      all = all && bucket.found();
      probes += static_cast<double>(bucket.run.trials.size());
      seconds += to_seconds(bucket.run.duration);
      ooms += static_cast<double>(bucket.run.ooms);
      extrapolated += bucket.run.answer.extrapolated ? 1 : 0;
      if (!bucket.check) continue;
      if (bucket.check->probe.outcome != ProbeOutcome::ok) {
        worst = 0;
        fits = false;
      }
      for (const ProbedCard& card : bucket.check->probe.cards) {
        worst = std::min(worst, static_cast<double>(card.total) - static_cast<double>(card.peak));
      }
    }
    batch = last.found() ? as_double(last.run.answer.batch) : 0;
    epoch_s = to_seconds(epoch.duration);
    if (!result.timed) seconds = epoch_s = std::nan("");
  }

  const BucketResult& last;
  const SearchEpochRun& epoch;
  std::int64_t planned;  ///< steps of the epoch, if there is one
  bool all = true;
  bool fits = true;  ///< every answer ran once more
  double probes = 0, seconds = 0, ooms = 0, extrapolated = 0;
  double worst = HUGE_VAL;  ///< least bytes that an answer leaves free on any card
  double batch = 0;
  double epoch_s = 0;

  [[nodiscard]] bool survived() const { return all && epoch.iterations > 0 && epoch.ooms == 0; }
  [[nodiscard]] bool finished() const { return all && fits && (planned == 0 || survived()); }
};

// With buckets, answers are those of the last bucket and costs are sums over all.
const std::vector<MetricRow<Facts>>& rows() {
  static const std::vector<MetricRow<Facts>> rows{
      {{"found", "found", "count", more, "1 if every bucket has an answer", {}, kTruth},
       [](const Facts& f) { return f.all ? 1.0 : 0.0; }},
      {{"finished",
        "finished",
        "count",
        more,
        "1 if every bucket has an answer that runs three steps, and no step of an epoch failed; only such a "
        "searcher can be best",
        {},
        kTruth},
       [](const Facts& f) { return f.finished() ? 1.0 : 0.0; }},
      {{"batch", "batch", "count", neither, "the batch that was answered; 0 if none"},
       [](const Facts& f) { return f.batch; }},
      {{"edge_batch", "edge", "count", neither,
        "the largest batch that runs three steps in every phase without a failure, found by bisection; none "
        "where largest batches are given"},
       [](const Facts& f) { return f.last.is_given ? std::nan("") : as_double(f.last.edge); }},
      {{"edge_share", "of the edge", "share", neither, "the answer over that; above 1 it does not fit",
        "batch / edge_batch", ValueRange{.low = 0}},
       [](const Facts& f) {
         return f.last.is_given ? std::nan("") : f.last.edge > 0 ? f.batch / as_double(f.last.edge) : 0;
       }},
      {{"probes", "probes", "count", less, "sizes tried"}, [](const Facts& f) { return f.probes; }},
      {{"probe_s", "probing", "s", less,
        "simulated time that took, clean-up included; none where the model has no times"},
       [](const Facts& f) { return f.seconds; }},
      {{"probe_ooms", "probe OOMs", "count", less, "probes that ran out of memory"},
       [](const Facts& f) { return f.ooms; }},
      {{"extrapolated", "untried", "count", less, "answers that no good probe has shown to fit"},
       [](const Facts& f) { return f.extrapolated; }},
      {{"headroom_bytes", "headroom", "bytes", neither,
        "what three steps at the answer leave free on the fullest card; 0 where it does not fit",
        "total − max allocated"},
       [](const Facts& f) { return std::isinf(f.worst) ? 0 : f.worst; }},
      {{"epoch_iterations", "epoch steps", "count", neither, "steps of the epoch after it"},
       [](const Facts& f) { return f.epoch.iterations; }},
      {{"epoch_ooms", "epoch OOMs", "count", less, "those that ran out of memory"},
       [](const Facts& f) { return f.epoch.ooms; }},
      {{"epoch_retries", "epoch retries", "count", less,
        "allocations of the epoch that first had to release the cache"},
       [](const Facts& f) { return f.epoch.retries; }},
      {{"epoch_survived",
        "survived",
        "count",
        more,
        "1 if there was an epoch and none of its steps failed",
        {},
        kTruth},
       [](const Facts& f) { return f.survived() ? 1.0 : 0.0; }},
      {{"epoch_peak_ratio", "epoch peak", "share", neither,
        "highest allocated bytes of the epoch, on the fullest card", "max allocated / total"},
       [](const Facts& f) { return f.epoch.peak_share; }},
      {{"epoch_reserved_ratio", "epoch reserved", "share", neither,
        "highest reserved bytes of the epoch, on the fullest card", "max reserved / total", kReservedShare},
       [](const Facts& f) { return f.epoch.reserved_share; }},
      {{"epoch_samples_per_s", "epoch samples/s", "1/s", more,
        "samples of the steps that did not fail, per second", "Σ batch / duration"},
       [](const Facts& f) { return f.epoch_s == 0 ? 0 : as_double(f.epoch.samples) / f.epoch_s; }},
  };
  return rows;
}

}  // namespace

std::vector<Metric> search_metrics(const SearchResult& result) { return measure(rows(), Facts{result}); }

const MetricTable& search_metric_table() {
  static const MetricTable table = table_of(rows());
  return table;
}

}  // namespace vramlab
