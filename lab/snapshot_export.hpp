// A simulated history as a file that PyTorch's own viewer opens.
#pragma once

#include <filesystem>
#include <span>

#include "trace/snapshot_writer.hpp"

namespace vramlab {

/// Writes what `allocator` holds now, the history that led to it (of device 0, oldest entry first) and the
/// settings it ran with. `stacks` is the snapshot whose stacks the entries name; null = they name none.
/// The file is replaced whole or not at all; throws InputError if it cannot be written.
void write_torch_snapshot(const CachingAllocator& allocator, std::span<const TraceEntry> history,
                          const AllocatorSettings& settings, const std::filesystem::path& file,
                          const TorchSnapshot* stacks = nullptr,
                          std::span<const SnapshotAnnotation> annotations = {});

}  // namespace vramlab
