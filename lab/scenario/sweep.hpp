// A sweep: one scenario at every combination of some values of its keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/scenario/file.hpp"

namespace vramlab {

/// One key of the scenario and the values it takes.
struct SweepAxis {
  std::string name;     ///< unique; a column of the results
  std::string pointer;  ///< JSON pointer into the scenario
  std::vector<Json> values;
};

/// One combination.
struct SweepRun {
  std::vector<std::size_t> at;  ///< index of the value on each axis
  ScenarioDocument scenario;
};

/// All combinations, the last axis moving fastest.
struct Sweep {
  std::vector<SweepAxis> axes;
  std::vector<SweepRun> runs;

  /// "limit 8GiB, seed 2", for messages.
  [[nodiscard]] std::string point_text(const SweepRun& run) const;
};

/// More combinations than this are refused.
inline constexpr std::size_t kMostSweepRuns = 100000;

/// The table of an entry of "sweep".
const RecordBase& sweep_table();

/// Whether the scenario has a "sweep".
bool has_sweep(const ScenarioDocument& scenario);

/// Expands it; the combinations have no "sweep" and no "expect". Throws InputError with every problem of the
/// axes: a key that is not in the scenario, no values, a name given twice, too many combinations.
Sweep read_sweep(const ScenarioDocument& scenario);

/// A value as text: plain where it is text, else as JSON.
std::string value_text(const Json& value);

}  // namespace vramlab
