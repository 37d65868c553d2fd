#include "lab/snapshot_export.hpp"

#include "report/output_file.hpp"

namespace vramlab {

void write_torch_snapshot(const CachingAllocator& allocator, std::span<const TraceEntry> history,
                          const AllocatorSettings& settings, const std::filesystem::path& file,
                          const TorchSnapshot* stacks, std::span<const SnapshotAnnotation> annotations) {
  TorchSnapshot around = snapshot_of(allocator);
  if (stacks != nullptr) {
    around.frames = stacks->frames;
    around.stacks = stacks->stacks;
  }
  OutputFile output{file};
  SnapshotWriter writer{[&](std::string_view bytes) { output.write(bytes); }, around};
  writer.begin_device();
  for (const TraceEntry& entry : history) writer.add(entry);
  writer.finish(settings, annotations);
  output.commit();
}

}  // namespace vramlab
