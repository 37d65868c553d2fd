#include "lab/experiment.hpp"
#include "lab/kinds/search/spec.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

SearchEpochRun run_epoch_of(const SearchScenario& scenario, const std::vector<BucketResult>& found,
                            SimTime start) {
  SearchEpochSetup setup = scenario.epoch;
  setup.start = start;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const BatchSearchSetup& search = scenario.buckets[i].setup;
    if (!found[i].found()) return {};
    Point point = search.phases.front().point;
    point[search.parameter] = found[i].run.answer.batch;
    setup.buckets.push_back({std::move(point), scenario.buckets[i].draws});
  }
  return run_search_epoch(scenario.buckets.front().setup, setup);
}

}  // namespace

std::vector<SearchResult> compare_searchers(const SearchScenario& scenario,
                                            const std::vector<std::string>& labels) {
  std::vector<std::int64_t> edges;
  for (const SearchBucket& bucket : scenario.buckets) edges.push_back(largest_batch(bucket.setup));
  return run_policies(scenario, labels, [&](const PolicyEntry& entry) {
    SearchResult result{
        named_after(entry), {}, {}, scenario.epoch.iterations, scenario.models.front()->timed()};
    SimTime clock{0};  // one search begins when the one before has ended
    for (std::size_t i = 0; i < scenario.buckets.size(); ++i) {
      BatchSearchSetup setup = scenario.buckets[i].setup;
      setup.start = clock;
      const auto searcher = scenario.known->searchers.make(entry.choice);
      BucketResult bucket{.run = run_batch_search(setup, *searcher), .edge = edges[i], .check = {}};
      clock += bucket.run.duration;
      setup.start = clock;
      if (bucket.found()) bucket.check = probe_batch(setup, bucket.run.answer.batch);
      result.buckets.push_back(std::move(bucket));
    }
    if (scenario.epoch.iterations > 0) result.epoch = run_epoch_of(scenario, result.buckets, clock);
    result.metrics = search_metrics(result);
    return result;
  });
}

}  // namespace vramlab
