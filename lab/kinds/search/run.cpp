#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "lab/kinds/search/spec.hpp"
#include "policies/contract/policy_set.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

void require_known(const SearchScenario& scenario, const std::vector<std::string>& labels) {
  std::vector<std::string> known;
  for (const PolicyEntry& entry : scenario.policies) known.push_back(entry.label);
  for (const std::string& label : labels) {
    if (std::find(known.begin(), known.end(), label) != known.end()) continue;
    throw InputError(scenario.file, "no policy is labelled \"" + label + "\"." + suggest_name(label, known));
  }
}

SearchEpochRun run_epoch_of(const SearchScenario& scenario, const std::vector<BucketResult>& found) {
  SearchEpochSetup setup = scenario.epoch;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const BatchSearchSetup& search = scenario.buckets[i].setup;
    if (!found[i].found()) return {};
    Point point = search.phases.front().point;
    point[search.parameter] = found[i].run.answer.batch;
    setup.buckets.push_back({std::move(point), scenario.buckets[i].draws});
  }
  return run_search_epoch(scenario.buckets.front().setup, setup);
}

// The answer is the number of the last bucket, where lengths are largest; costs are sums over all.
std::vector<Metric> metrics_of(const SearchResult& result) {
  const BucketResult& last = result.buckets.back();
  const bool all = std::all_of(result.buckets.begin(), result.buckets.end(),
                               [](const BucketResult& bucket) { return bucket.found(); });
  double probes = 0, seconds = 0, ooms = 0, worst = HUGE_VAL, extrapolated = 0;
  for (const BucketResult& bucket : result.buckets) {
    probes += static_cast<double>(bucket.run.trials.size());
    seconds += to_seconds(bucket.run.duration);
    ooms += static_cast<double>(bucket.run.ooms);
    extrapolated += bucket.run.answer.extrapolated ? 1 : 0;
    if (!bucket.check) continue;
    if (bucket.check->probe.outcome != ProbeOutcome::ok) worst = 0;
    for (const ProbedCard& card : bucket.check->probe.cards) {
      worst = std::min(worst, static_cast<double>(card.total) - static_cast<double>(card.peak));
    }
  }
  const auto count = [](std::int64_t number) { return static_cast<double>(number); };
  const SearchEpochRun& epoch = result.epoch;
  const bool survived = all && epoch.iterations > 0 && epoch.ooms == 0;
  const double batch = last.found() ? count(last.run.answer.batch) : 0;
  const double epoch_s = to_seconds(epoch.duration);
  return {
      {"found", all ? 1.0 : 0.0},
      {"batch", batch},
      {"edge_batch", count(last.edge)},
      {"edge_share", last.edge > 0 ? batch / count(last.edge) : 0},
      {"probes", probes},
      {"probe_s", seconds},
      {"probe_ooms", ooms},
      {"extrapolated", extrapolated},
      {"headroom_bytes", std::isinf(worst) ? 0 : worst},
      {"epoch_iterations", count(epoch.iterations)},
      {"epoch_ooms", count(epoch.ooms)},
      {"epoch_retries", count(epoch.retries)},
      {"epoch_survived", survived ? 1.0 : 0.0},
      {"epoch_peak_ratio", epoch.peak_share},
      {"epoch_reserved_ratio", epoch.reserved_share},
      {"epoch_samples_per_s", epoch_s > 0 ? count(epoch.samples) / epoch_s : 0},
  };
}

}  // namespace

std::vector<SearchResult> compare_searchers(const SearchScenario& scenario,
                                            const std::vector<std::string>& labels) {
  require_known(scenario, labels);
  std::vector<std::int64_t> edges;
  for (const SearchBucket& bucket : scenario.buckets) edges.push_back(largest_batch(bucket.setup));
  std::vector<SearchResult> results;
  for (const PolicyEntry& entry : scenario.policies) {
    if (!labels.empty() && std::find(labels.begin(), labels.end(), entry.label) == labels.end()) continue;
    SearchResult result{.policy = entry.choice.use, .profile = entry.choice.profile, .label = entry.label};
    for (std::size_t i = 0; i < scenario.buckets.size(); ++i) {
      const BatchSearchSetup& setup = scenario.buckets[i].setup;
      const auto searcher = scenario.known->searchers.make(entry.choice);
      BucketResult bucket{.run = run_batch_search(setup, *searcher), .edge = edges[i], .check = {}};
      if (bucket.found()) bucket.check = probe_batch(setup, bucket.run.answer.batch);
      result.buckets.push_back(std::move(bucket));
    }
    if (scenario.epoch.iterations > 0) result.epoch = run_epoch_of(scenario, result.buckets);
    result.metrics = metrics_of(result);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<std::string> search_metric_names() {
  SearchResult empty;
  empty.buckets.resize(1);
  std::vector<std::string> names;
  for (const Metric& metric : metrics_of(empty)) names.push_back(metric.name);
  return names;
}

}  // namespace vramlab
