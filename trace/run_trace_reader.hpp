// Reads the trace of a run back, as `vramlab run --trace` and `compare --trace-dir` wrote it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/core/run_record.hpp"

namespace vramlab {

/// The iterations of a run, and the names of their parameters.
struct RunTrace {
  std::vector<std::string> parameters;
  std::vector<IterationRecord> iterations;
};

/// A .jsonl or .csv trace, plain or compressed. Throws InputError for a trace of another kind than
/// training, and with file and line for a missing column or a value that is none.
RunTrace read_run_trace(const std::filesystem::path& file);

}  // namespace vramlab
