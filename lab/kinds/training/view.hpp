// What a comparison of training runs comes to: a line, JSON, files, a section of the report.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/page/sections.hpp"

namespace vramlab {

/// The result of `compare`; `trace_files` gives the trace written for a label, where there is one.
Json comparison_json(const TrainingScenario& scenario, const Comparison& comparison,
                     const std::map<std::string, std::string>& trace_files);

/// Runs side by side: curves with at most 4,000 points each, every OOM, retry and change as a mark or in one
/// that says how many it stands for.
Json training_section(const TrainingScenario& scenario, const Comparison& comparison,
                      const SectionHead& head);

/// What came before a run that has a `search`: "binsearch, then predictive began at batch 12, which its
/// search found in 9 probes, 1 OOM, 5.0 s."
std::string search_line(const TrainingScenario& scenario, const PolicyResult& result);

/// Throws InputError unless `file` is empty or ends in .jsonl, .csv or .perfetto.json.
void require_trace_name(const std::string& file);

/// Writes one run's trace; the ending gives the form. Throws InputError for any other. `title` is what a
/// viewer of Perfetto files calls the run.
void write_trace(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                 const std::string& file, const std::string& title = "");

}  // namespace vramlab
