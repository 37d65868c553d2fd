// Draws jobs at random: arrivals over some hours, needs and durations from a mix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/workload/job.hpp"

namespace vramlab {

/// One sort of job in a mix. Needs are drawn evenly, in MiB; durations evenly in their logarithm (by
/// octaves).
struct JobSort {
  std::string name;
  std::int64_t weight = 1;
  Bytes need_low = 0;
  Bytes need_high = 0;
  SimTime shortest{0};
  SimTime longest{0};
  /// Cards, priority, batch; its need is drawn (for `batch` samples where that is above 1) unless it has a
  /// model, of which it then runs as many steps as the duration drawn holds.
  JobDemand demand;
  std::optional<JobModel> model;
  JobPhase step;  ///< one step of the model
  std::int32_t busy_milli = 1000;
};

/// `count` jobs that arrive evenly at random within `span`. Integers only: equal on every machine.
std::vector<JobSpec> generate_jobs(const std::vector<JobSort>& mix, std::int64_t count, SimTime span,
                                   std::uint64_t seed);

/// Sets the real use of every job to its need times 1 ± `spread` (thousandths, drawn evenly). A job with
/// several phases, or with a use of its own, stays as it is. What a model uses is what it is: there the need
/// that is declared becomes so many times itself.
void spread_use(std::vector<JobSpec>& jobs, std::int64_t spread_milli, Bytes card_total, std::uint64_t seed);

}  // namespace vramlab
