// Recordings of real training runs, cut at their marks.
#pragma once

#include <optional>
#include <string>

#include "fit/step_record.hpp"

namespace vramlab {

/// The recording `name` of tests/data/recorded, ../shared/data/recorded or ../shared/data/programs-h200.
/// Empty if it is in none of them.
std::optional<RecordedRun> recorded_run(const std::string& name);

}  // namespace vramlab
