// Writes what happened in runs and on shared cards: traces and the picture.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/training/run.hpp"

namespace vramlab {

/// For each label the path in `folder` (made if missing) that its files begin with; no two are equal. Throws
/// InputError if the folder cannot be made.
std::map<std::string, std::string> trace_bases(const std::vector<std::string>& labels,
                                               const std::string& folder);

/// Writes one trace a policy into `folder` (made if missing), named by label; returns label → file.
std::map<std::string, std::string> write_traces(const TrainingScenario& scenario,
                                                const Comparison& comparison, const std::string& folder);

/// Throws InputError unless `file` is empty or ends in .jsonl, .csv or .perfetto.json.
void require_trace_name(const std::string& file);

/// Writes one run's trace; the ending gives the form. Throws InputError for any other. `title` is what a
/// viewer of Perfetto files calls the run.
void write_trace(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                 const std::string& file, const std::string& title = "");

// Writes what happened on shared cards: traces and the picture.

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
