// What a comparison comes to, in one line.
#pragma once

#include <string>

#include "lab/comparison.hpp"

namespace vramlab {

/// Names the best policy and how far it is from the oracle. Policies are ranked first by safety (no OOM and,
/// in the last quarter of the run, never above target plus margin; then no OOM; then the others; last those
/// whose run ended early), then by work done.
std::string verdict(const Scenario& scenario, const Comparison& comparison);

}  // namespace vramlab
