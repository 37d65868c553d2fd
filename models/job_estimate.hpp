// The table estimate of a job's memory: kind and size of a model, batch, sequence length, training or not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace vramlab {

/// What the table is asked for.
struct JobEstimate {
  std::string type = "transformer";  ///< transformer, cnn, rnn
  std::string size = "medium";       ///< small, medium, large; transformer also xlarge
  std::int64_t batch = 8;
  std::int64_t sequence = 512;  ///< counts for transformers only
  bool training = true;         ///< × 2.5 for gradients and optimizer state
  bool faithful = false;  ///< as the published queue computes: always "medium", ratios below 1 count as 1
};

/// Bytes at `estimate.batch` samples, rounded up to a byte; a unit of the table is a MiB. Throws
/// InputError at `where` for a type or size that is not in the table.
Bytes estimated_bytes(const JobEstimate& estimate, const std::string& where = {});

/// The types of the table.
std::vector<std::string> estimate_types();

}  // namespace vramlab
