// Writes the traces of runs to files.
#pragma once

#include <map>
#include <string>

#include "lab/comparison.hpp"

namespace vramlab {

/// Writes one trace a policy into `folder` (made if missing), named by label; returns label → file.
std::map<std::string, std::string> write_traces(const Scenario& scenario, const Comparison& comparison,
                                                const std::string& folder);

/// Throws InputError unless `file` is empty or ends in .jsonl or .csv.
void require_trace_name(const std::string& file);

/// Writes one run's trace; the ending, .jsonl or .csv, gives the form. Throws InputError for any other.
void write_trace(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                 const std::string& file);

}  // namespace vramlab
