// A scenario of kind `search`: a workload, the searchers to try on it, and what must come out.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment.hpp"
#include "lab/metric.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/scenario.hpp"
#include "sim/runs/batch_search_loop.hpp"

namespace vramlab {

/// A search of one length bucket; without buckets there is one.
struct SearchBucket {
  std::string name;  ///< "seq 512"; empty without buckets
  BatchSearchSetup setup;
  std::vector<StepDraw> draws;  ///< lengths of the epoch's steps
};

/// What bounds a batch, and where an answer ends.
enum class BatchBound : std::uint8_t {
  memory,
  model_range,  ///< the largest batch that the model is meant for
  bounds,       ///< of the scenario
  max_batch,
  dataset,
  searcher  ///< an option of the searcher: its largest size, its number of trials
};

/// A scenario of searches, checked and ready to run.
struct SearchScenario : Scenario {
  std::vector<std::shared_ptr<const WorkloadModel>> models;  ///< what the setups refer to
  std::vector<SearchBucket> buckets;                         ///< at least one
  SearchEpochSetup epoch;                                    ///< without buckets; 0 iterations = none
  BatchBound high_bound = BatchBound::model_range;           ///< what the largest batch allowed comes from
  std::vector<std::string> notes;                            ///< what must be known of the allocator
};

/// What one searcher found in one bucket.
struct BucketResult {
  BatchSearchRun run;
  std::int64_t edge = 0;  ///< the largest batch that fits at all (`largest_batch`); 0 if `is_given`
  std::optional<SearchTrial> check;  ///< the answer, run once more: what it leaves free
  bool is_given = false;             ///< from largest batches that the file gives: nothing was probed
  [[nodiscard]] bool found() const { return run.answer.action == SearcherAnswer::Action::found; }
};

/// What one searcher made of a scenario.
struct SearchResult : PolicyFigures {
  std::vector<BucketResult> buckets;
  SearchEpochRun epoch;
  std::int64_t planned = 0;  ///< steps that the epoch was to have; 0 = none
  bool timed = true;         ///< the model's steps have times; without them there are no seconds and no rates
};

/// Reads a scenario of kind `search`. Throws InputError with every problem of the file.
SearchScenario read_search(const ScenarioDocument& document);

/// The keys of such a file.
const RecordBase& search_table();

/// Lets probes and steps run where `question` says. Throws InputError where that is a machine with fewer
/// cards than the scenario.
void perform_on(const Question& question, SearchScenario& scenario);

/// Runs the policies labelled so, all if there are none. Throws InputError for an unknown label.
std::vector<SearchResult> compare_searchers(const SearchScenario& scenario,
                                            const std::vector<std::string>& labels = {});

/// All metrics of a result in a fixed order (docs/metrics.md).
std::vector<Metric> search_metrics(const SearchResult& result);
const MetricTable& search_metric_table();

Json search_json(const SearchScenario& scenario, const std::vector<SearchResult>& results);

/// The answer of `vramlab find-batch`.
Json find_batch_json(const SearchScenario& scenario, const SearchResult& result);

/// The ladder of trials of each searcher. `result` is that of `compare` for kind search: its
/// "scenario", and policies with "label", "found", "batch", "extrapolated", "edge_batch", "headroom_bytes",
/// "reason" and "trials", or "buckets" of such.
Json search_section(const Json& result, const SectionHead& head, const std::string& description);

/// "ok", "oom", "held", "failed".
std::string_view probe_outcome_name(ProbeOutcome outcome);

/// Whether steps of `bucket` at `batch` rest on peaks beyond the points that were measured, in any phase and
/// at any length drawn; false where the models are not `measured`.
bool is_beyond_points(const SearchBucket& bucket, std::int64_t batch);

/// "18 lies beyond the 4 measured points, batch 2 to 13, reserved memory: its peak is extrapolated", or the
/// same of the edge where the answer does not; empty where neither does.
std::string beyond_text(const SearchBucket& bucket, const BucketResult& result);

/// What kept the answer from being larger. Where nothing was found, it was memory.
BatchBound bound_of(const SearchScenario& scenario, const SearchBucket& bucket, const BucketResult& result);

/// "64 is where the model's range ends (9 % of the card)"; empty where memory bounds the answer. The share is
/// that of the highest allocated bytes of steps at the answer.
std::string bound_text(const SearchScenario& scenario, const SearchBucket& bucket,
                       const BucketResult& result);

}  // namespace vramlab
