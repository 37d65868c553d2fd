// The key `faults` of a training scenario.
#pragma once

#include <vector>

#include "lab/field_table.hpp"
#include "lab/scenario_parts.hpp"
#include "sim/workload/faults.hpp"

namespace vramlab {

std::vector<Field> fault_fields();

/// The faults that `json`, which passed its checks, declares. Adds what does not go together to `problems`.
Faults read_faults(const Json& json, std::uint64_t seed, FileProblems& problems);

}  // namespace vramlab
