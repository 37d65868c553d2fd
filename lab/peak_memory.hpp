// Where memory went at a program's peak.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/whatif.hpp"
#include "trace/client_program.hpp"
#include "trace/peak_share.hpp"

namespace vramlab {

/// The blocks held when allocated memory was highest. The shares of each list are sorted by bytes and sum up
/// to `bytes`.
struct PeakMemory {
  Bytes bytes = 0;      ///< allocated: the blocks' sizes
  Bytes requested = 0;  ///< what the program asked for of them
  std::uint64_t blocks = 0;
  std::string mark;                 ///< in whose stretch the peak lies; may be empty
  std::vector<PeakShare> by_frame;  ///< empty if no stacks were recorded
  std::vector<PeakShare> by_size;
  std::vector<PeakShare> by_stream;
};

/// Replays the program of a row again up to its peak; if it does not fit there, without any limit.
PeakMemory peak_memory(const ClientProgram& program, const WhatIfRow& row);

}  // namespace vramlab
