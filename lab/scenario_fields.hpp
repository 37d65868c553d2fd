// The keys of a scenario file; docs and schema come from the same table as the checks.
#pragma once

#include <vector>

#include "lab/field_table.hpp"

namespace vramlab {

/// Fields of a scenario of kind `training`.
std::vector<Field> scenario_fields();

/// What every expectation has: "min", "max", "equals", "tolerance", "relative_to".
std::vector<Field> bound_fields();

/// "seeds" of a scenario, and "share" of its expectations, for every kind with something random.
Field seeds_field();
Field share_field();

}  // namespace vramlab
