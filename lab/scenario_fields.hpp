// The keys of a scenario file; docs and schema come from the same table as the checks.
#pragma once

#include <vector>

#include "lab/field_table.hpp"

namespace vramlab {

/// Fields of a scenario of kind `training`.
std::vector<Field> scenario_fields();

}  // namespace vramlab
