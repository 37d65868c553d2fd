#include "lab/whatif_export.hpp"

#include "lab/snapshot_export.hpp"

namespace vramlab {

void export_row(const ClientProgram& program, const WhatIfRow& row, const std::filesystem::path& file) {
  TorchSnapshot names;
  names.frames = program.frames;
  if (!program.stacks.empty()) names.stacks = program.stacks;
  const ReplaySetup setup = setup_of(row);
  HistoryRecorder history;
  replay_program(program, setup, history, [&](const CachingAllocator& allocator) {
    write_torch_snapshot(allocator, history.entries(), allocator.settings(), file, &names);
  });
}

SegmentMap row_map(const ClientProgram& program, const WhatIfRow& row) {
  HistoryRecorder history;
  replay_program(program, setup_of(row), history, [](const CachingAllocator&) {});
  return segment_map(history.entries());
}

}  // namespace vramlab
