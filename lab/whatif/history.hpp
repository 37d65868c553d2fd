// What one answer's replay held at its peak, and its history as a map and as a file that PyTorch's own viewer
// opens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lab/page/segment_map.hpp"
#include "lab/whatif/whatif.hpp"
#include "recordings/scripts/client_program.hpp"
#include "recordings/snapshot/peak_attribution.hpp"
#include "recordings/snapshot/writer.hpp"

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

// The history of one answer as a file that PyTorch's own viewer opens.

/// Replays `program` as `row` did and writes what the allocator did as a memory snapshot. Times of entries
/// are numbers of actions. Throws InputError if the file cannot be written.
void export_row(const ClientProgram& program, const WhatIfRow& row, const std::filesystem::path& file);

/// The same history as a map of the address space.
SegmentMap row_map(const ClientProgram& program, const WhatIfRow& row);

// A simulated history as a file that PyTorch's own viewer opens.

/// Writes what `allocator` holds now, the history that led to it (of device 0, oldest entry first) and the
/// settings it ran with. `stacks` is the snapshot whose stacks the entries name; null = they name none.
/// The file is replaced whole or not at all; throws InputError if it cannot be written.
void write_torch_snapshot(const CachingAllocator& allocator, std::span<const TraceEntry> history,
                          const AllocatorSettings& settings, const std::filesystem::path& file,
                          const TorchSnapshot* stacks = nullptr,
                          std::span<const SnapshotAnnotation> annotations = {});

}  // namespace vramlab
