// The history of one answer as a file that PyTorch's own viewer opens.
#pragma once

#include <filesystem>

#include "lab/segment_map.hpp"
#include "lab/whatif.hpp"

namespace vramlab {

/// Replays `program` as `row` did and writes what the allocator did as a memory snapshot. Times of entries
/// are numbers of actions. Throws InputError if the file cannot be written.
void export_row(const ClientProgram& program, const WhatIfRow& row, const std::filesystem::path& file);

/// The same history as a map of the address space.
SegmentMap row_map(const ClientProgram& program, const WhatIfRow& row);

}  // namespace vramlab
