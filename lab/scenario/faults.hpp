// "faults" of a scenario: what goes wrong in every run of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/records/record.hpp"
#include "lab/scenario/expectations.hpp"
#include "lab/scenario/file.hpp"
#include "sim/runs/faults.hpp"
#include "sim/runs/stepped_run.hpp"

namespace vramlab {

/// The kinds that have faults, each those that make sense there: an epoch composes its batches when they are
/// needed and restarts by a key of its own; in a search a clean-up ends every probe.
enum class FaultsOf : std::uint8_t { training, epoch, search };

const Record<Faults>& faults_table(FaultsOf kind);

inline constexpr const char* kFaultsHelp = "what goes wrong in every run (default: nothing)";

/// The faults of a scenario with this seed. Adds what does not go together to `problems`.
Faults read_faults(const std::optional<Faults>& section, std::uint64_t seed, FileProblems& problems);

/// The faults that none of `iterations` steps meets: too late, or by a chance too small for them.
std::vector<Unmet> unmet_faults(const Faults& faults, std::int64_t iterations);

/// The processes that come after a run's `end`, by their clock.
std::vector<Unmet> unmet_others(const std::vector<OtherProcess>& others, SimTime end);

}  // namespace vramlab
