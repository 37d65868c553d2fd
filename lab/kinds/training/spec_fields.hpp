// The keys of a scenario file; docs and schema come from the same table as the checks.
#pragma once

#include <string_view>
#include <vector>

#include "lab/scenario/fields.hpp"

namespace vramlab {

/// Fields of a scenario of kind `training`.
std::vector<Field> scenario_fields();

/// The field `key` of kind `training`, for kinds that have it, too. Throws std::out_of_range if it has none.
Field shared_field(std::string_view key);

/// "kind", for scenarios of the kind `name`.
Field kind_field(std::string_view name);

/// "policies" without what only tuners have, and "expect" for kinds that are judged by metrics alone.
Field policies_field();
Field metric_expectations_field();

/// What every expectation has: "min", "max", "equals", "tolerance", "relative_to".
std::vector<Field> bound_fields();

/// "seeds" of a scenario, and "share" of its expectations, for every kind with something random.
Field seeds_field();
Field share_field();

}  // namespace vramlab
