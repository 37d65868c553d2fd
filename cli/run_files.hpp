// Writes the traces of runs to files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/comparison.hpp"

namespace vramlab {

/// For each label the path in `folder` (made if missing) that its files begin with; no two are equal. Throws
/// InputError if the folder cannot be made.
std::map<std::string, std::string> trace_bases(const std::vector<std::string>& labels,
                                               const std::string& folder);

/// Writes one trace a policy into `folder` (made if missing), named by label; returns label → file.
std::map<std::string, std::string> write_traces(const Scenario& scenario, const Comparison& comparison,
                                                const std::string& folder);

/// Throws InputError unless `file` is empty or ends in .jsonl, .csv or .perfetto.json.
void require_trace_name(const std::string& file);

/// Writes one run's trace; the ending gives the form. Throws InputError for any other. `title` is what a
/// viewer of Perfetto files calls the run.
void write_trace(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                 const std::string& file, const std::string& title = "");

}  // namespace vramlab
