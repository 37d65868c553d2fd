// A scenario of kind `jobs`: jobs on shared cards, the queue policies to try, and what must come out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lab/metric.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/scenario.hpp"
#include "sim/runs/job_queue_loop.hpp"

namespace vramlab {

/// A scenario of jobs, checked and ready to run.
struct JobsScenario : Scenario {
  bool draws = false;  ///< something of it is drawn with the seed
  JobQueueSetup setup;
  std::vector<std::string> notes;  ///< what had to be assumed or left out to read it

  /// How many there are.
  [[nodiscard]] std::size_t cards() const;
};

/// What one policy made of the jobs. Of several seeds `metrics` are means, and `run` is empty.
struct JobsResult : PolicyFigures {
  JobQueueRun run;
  std::vector<Metric> spread{};  ///< of several seeds: standard deviations of the sample (n − 1)
};

/// Reads a scenario of kind `jobs`. Throws InputError with every problem of the file.
JobsScenario read_jobs(const ScenarioDocument& document);

/// The keys of such a file.
const RecordBase& jobs_table();

/// Runs the policies labelled so, all if there are none. Throws InputError for an unknown label.
std::vector<JobsResult> compare_queues(const JobsScenario& scenario,
                                       const std::vector<std::string>& labels = {});

/// The same on each of several scenarios, at least two: one scenario, one seed each.
std::vector<JobsResult> compare_seeds(const std::vector<JobsScenario>& scenarios,
                                      const std::vector<std::string>& labels);

/// All metrics of a run in a fixed order (docs/metrics.md).
std::vector<Metric> jobs_metrics(const JobQueueSetup& setup, const JobQueueRun& run);
const MetricTable& jobs_metric_table();

/// `trace_files` gives the files written for a label, where there are some.
Json jobs_json(const JobsScenario& scenario, const std::vector<JobsResult>& results,
               const std::map<std::string, std::vector<std::string>>& trace_files = {});

/// Queues side by side: who was on which card when, how many waited. The runs must have kept their moments.
/// Of one policy at most 64 cards and some 4,000 stays, but every one that ran out of memory.
Json jobs_section(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                  const SectionHead& head);

}  // namespace vramlab
