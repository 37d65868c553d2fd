// The trace of a run, one line an iteration, as JSON lines or CSV.
#pragma once

#include <string>
#include <vector>

#include "sim/core/parameter_space.hpp"
#include "sim/core/run_record.hpp"

namespace vramlab {

/// One JSON object a line: iteration, start and duration in seconds, the parameters, whether it ran out of
/// memory or ended in another error, whether its work was kept, all memory figures in bytes, the change made
/// after the step and the reason.
std::string trace_jsonl(const ParameterSpace& space, const std::vector<IterationRecord>& records);

/// The same columns as CSV with a header; changes are in columns named `d_` and the parameter.
std::string trace_csv(const ParameterSpace& space, const std::vector<IterationRecord>& records);

}  // namespace vramlab
