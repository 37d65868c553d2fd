// Finds the steps of a training run in its history when nobody marked them.
#pragma once

#include <cstddef>
#include <vector>

#include "trace/torch_snapshot.hpp"

namespace vramlab {

/// The repeated part at the end of a history.
struct RepeatedSteps {
  std::size_t begin = 0;          ///< first entry of the first repetition
  std::vector<std::size_t> ends;  ///< past the last entry of each repetition
};

/// Of all periods with which the history ends (at least two equal repetitions of allocations and
/// frees of the same sizes) the one that explains most of it; the shorter of two.
RepeatedSteps find_repeated_steps(const std::vector<TraceEntry>& trace);

}  // namespace vramlab
