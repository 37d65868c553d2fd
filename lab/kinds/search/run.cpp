#include <algorithm>

#include "lab/experiment.hpp"
#include "lab/kinds/search/spec.hpp"
#include "models/measured.hpp"
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

// The largest batches that the file gives, in place of a search: no searcher is asked and nothing is probed.
SearchResult answer_from(const LargestBatches& given, const SearchScenario& scenario,
                         const PolicyEntry& entry) {
  SearchResult result{named_after(entry), {}, {}, 0, given.timed()};
  const std::size_t length = given.parameters().find("length").value();
  for (const SearchBucket& bucket : scenario.buckets) {
    const LargestBatches::Answer answer = given.at(bucket.setup.phases.front().point[length]);
    const bool found = answer.batch >= bucket.setup.low;
    SearcherAnswer& told = result.buckets.emplace_back(BucketResult{.is_given = true}).run.answer;
    told.action = found ? SearcherAnswer::Action::found : SearcherAnswer::Action::none_fits;
    told.batch = found ? std::min(answer.batch, bucket.setup.high) : 0;
    told.extrapolated = !answer.given;
    told.largest_good = answer.given ? answer.batch : 0;
    told.reason = answer.reason;
  }
  result.metrics = search_metrics(result);
  return result;
}

}  // namespace

std::vector<SearchResult> compare_searchers(const SearchScenario& scenario,
                                            const std::vector<std::string>& labels) {
  if (const auto* given = dynamic_cast<const LargestBatches*>(scenario.models.front().get())) {
    return run_policies(scenario, labels,
                        [&](const PolicyEntry& entry) { return answer_from(*given, scenario, entry); });
  }
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
