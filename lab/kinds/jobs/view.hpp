// What became of the jobs of a scenario: over several seeds, which tell what is the policy and what is luck;
// in files, a picture and a section of the report.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/page/sections.hpp"

namespace vramlab {

/// The metrics of one policy over several seeds.
struct SeededResult {
  JobsResult mean;             ///< `metrics` are means; `run` is empty
  std::vector<Metric> spread;  ///< standard deviations of the sample (n − 1)
};

/// Runs the policies labelled so, all if there are none, on each scenario: one scenario, one seed each. There
/// must be at least two. Throws InputError for an unknown label.
std::vector<SeededResult> compare_seeds(const std::vector<JobsScenario>& scenarios,
                                        const std::vector<std::string>& labels);

/// The result of `compare` with several seeds.
Json seeds_json(const std::vector<JobsScenario>& scenarios, const std::vector<SeededResult>& results);

/// The jobs that did not complete, the first to end first; if all did, those that waited longest.
std::vector<std::string> jobs_to_look_at(const JobQueueSetup& setup, const JobQueueRun& run);

// What happened on shared cards, for people: files, the picture, a section of the report.

/// Queues side by side: who was on which card when, how many waited. The runs must have kept their moments.
/// Of one policy at most 64 cards and some 4,000 stays, but every one that ran out of memory.
Json jobs_section(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                  const SectionHead& head);

/// Writes the time line of each policy into `folder` (made if missing), named by label: LABEL.jsonl and
/// LABEL.csv (the cards), LABEL.jobs.csv (stays of jobs), LABEL.monitor.csv (the queue), LABEL.perfetto.json.
/// The runs must have kept their moments. Returns label → files.
std::map<std::string, std::vector<std::string>> write_queue_traces(const JobsScenario& scenario,
                                                                   const std::vector<JobsResult>& results,
                                                                   const std::string& folder);

/// Draws every card of every policy, the first 16 where there are more; says so through the titles.
void draw_queue(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                const std::string& title, const std::string& file);

}  // namespace vramlab
