// The key `faults` of a training scenario.
#pragma once

#include <vector>

#include "lab/scenario/fields.hpp"
#include "lab/scenario/file.hpp"
#include "sim/runs/faults.hpp"

namespace vramlab {

std::vector<Field> fault_fields();

/// The faults that `json`, which passed its checks, declares. Adds what does not go together to `problems`.
Faults read_faults(const Json& json, std::uint64_t seed, FileProblems& problems);

}  // namespace vramlab
