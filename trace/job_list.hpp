// Reads a CSV list of jobs: one line a job, by need and duration.
#pragma once

#include <filesystem>
#include <vector>

#include "sim/workload/job.hpp"

namespace vramlab {

/// Columns: arrival_s, duration_s, need (a size); and, where they are there: name, use (a size), cards,
/// priority, expected_s, crash_after_s. Throws InputError with the line of anything that does not read.
std::vector<JobSpec> read_job_list(const std::filesystem::path& file);

}  // namespace vramlab
