// A run as a trace that ui.perfetto.dev and chrome://tracing open (the JSON trace event format).
#pragma once

#include <string>
#include <vector>

#include "sim/core/run_record.hpp"

namespace vramlab {

/// One slice a step with its parameters; a counter track each for allocated, active and reserved bytes; a
/// mark for each step that ran out of memory and for each change of parameters. While a step lasts the
/// counters show its peaks, from its end on what it left. Active equals allocated: nothing in a simulated
/// step is used by a second stream (R8.7). Times are simulated.
std::string trace_perfetto(const std::string& title, const ParameterSpace& space,
                           const std::vector<IterationRecord>& records);

}  // namespace vramlab
