// Writes what happened on shared cards: traces and the picture.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/jobs_scenario.hpp"

namespace vramlab {

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
