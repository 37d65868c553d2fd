// An epoch at the batch sizes that a search found: does what fitted once fit all the time.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/batch_search_loop.hpp"

namespace vramlab {

/// Steps of one length bucket; without buckets there is one.
struct EpochBucket {
  Point point;  ///< its batch included
  /// Parameters drawn anew for each step, evenly within a range (lengths that vary within the bucket).
  struct Draw {
    std::size_t parameter = 0;
    std::int64_t low = 1;
    std::int64_t high = 1;
  };
  std::vector<Draw> draws;
};

struct EpochSetup {
  std::int64_t iterations = 0;
  std::int64_t phases_every = 0;  ///< the search's further phases, after so many steps; 0 = never
  std::uint64_t seed = 1;
  std::vector<EpochBucket> buckets;  ///< one is drawn for each step
};

/// What came of it.
struct EpochRun {
  std::int64_t iterations = 0;  ///< steps begun
  std::int64_t ooms = 0;        ///< steps that ran out of memory, phases included
  std::int64_t retries = 0;     ///< allocations that first had to release the cache
  std::int64_t samples = 0;     ///< of the steps that did not fail
  double peak_share = 0;        ///< highest allocated over the total, of the fullest card
  double reserved_share = 0;
  SimTime duration{0};
};

/// Runs an epoch in a fresh process. It ends early after ten failed steps in a row.
EpochRun run_epoch(const BatchSearchSetup& search, const EpochSetup& setup);

}  // namespace vramlab
