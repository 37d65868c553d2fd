// Where memory went at a program's peak.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/whatif.hpp"
#include "trace/client_program.hpp"

namespace vramlab {

/// Blocks that have something in common.
struct PeakShare {
  std::string name;                  ///< "resnet.py:151 forward", "1 to 10 MiB", "stream 0, default pools"
  std::vector<std::string> callers;  ///< of a frame: the next user frames outwards
  Bytes bytes = 0;
  std::uint64_t blocks = 0;
};

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

/// Whether a frame lies inside PyTorch or the interpreter: by its path, and where paths were cut to the
/// file's name, by the names of PyTorch's own files.
bool is_library_frame(const StackFrame& frame);

}  // namespace vramlab
