// How far the simulation of backend:cudaMallocAsync can be trusted, told by an oracle log of it.
#pragma once

#include <cstdint>

#include "sim/core/units.hpp"
#include "trace/oracle_log.hpp"
#include "trace/oracle_replay.hpp"

namespace vramlab {

/// A log replayed twice: with the recorded addresses, and with addresses of the simulation's own.
struct AsyncReplayResult {
  /// With the recorded addresses; everything is compared.
  ReplayResult given;
  /// Lowest hole first. Its counters are all but those of reserved bytes, and the address of every allocation
  /// is compared, but is not what makes it diverge.
  ReplayResult predicted;

  // What depends on the addresses, reserved bytes, under the predicted ones.
  std::uint64_t reserved_checked = 0;  ///< operations
  std::uint64_t reserved_mismatches = 0;
  double reserved_mean_error =
      0;  ///< |predicted − recorded| / recorded, over the operations with any reserved
  double reserved_worst_error = 0;  ///< the same, at the worst operation
  Bytes peak_reserved_recorded = 0;
  Bytes peak_reserved_predicted = 0;
};

/// Replays a whole log both ways. Throws InputError for a log of another backend.
AsyncReplayResult replay_async_log(const OracleLog& log);

}  // namespace vramlab
