// Recordings of real training runs, cut at their marks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "fit/step_record.hpp"

namespace vramlab {

/// The snapshot `name` of tests/data/recorded, ../shared/data/recorded or ../shared/data/programs-h200, if it
/// has marks beside it.
std::optional<std::filesystem::path> recording_file(const std::string& name);

/// The recording `name` of tests/data/recorded, ../shared/data/recorded or ../shared/data/programs-h200.
/// Empty if it is in none of them.
std::optional<RecordedRun> recorded_run(const std::string& name);

}  // namespace vramlab
