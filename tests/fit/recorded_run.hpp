// Recordings of real training runs, cut at their marks.
#pragma once

#include <optional>
#include <string>

#include "fit/step_record.hpp"

namespace vramlab {

/// The recording `name` of ../shared/data/recorded, or of tests/data/recorded where it is there too. Empty
/// if it is in neither.
std::optional<RecordedRun> recorded_run(const std::string& name);

}  // namespace vramlab
