#include "trace/divergence.hpp"

#include <algorithm>

namespace vramlab {

std::string describe_state(const CachingAllocator& allocator) {
  std::size_t free_blocks = 0;
  Bytes largest = 0;
  std::size_t pending = 0;
  const auto segments = allocator.segments();
  for (const SegmentView& segment : segments) {
    for (const BlockView& block : segment.blocks) {
      if (block.state == BlockState::pending_free) ++pending;
      if (block.state != BlockState::inactive) continue;
      ++free_blocks;
      largest = std::max(largest, block.size);
    }
  }
  const MemoryStats& stats = allocator.stats();
  const auto bytes = [](const StatArray& stat) {
    return format_bytes(static_cast<Bytes>(stat.all().current));
  };
  std::string text = "reserved " + bytes(stats.reserved_bytes) + " in " + std::to_string(segments.size()) +
                     " segments, allocated " + bytes(stats.allocated_bytes) + " in " +
                     std::to_string(stats.allocation.all().current) + " blocks, " +
                     std::to_string(free_blocks) + " free blocks, the largest of " + format_bytes(largest);
  if (pending > 0) text += ", " + std::to_string(pending) + " waiting for another stream";
  if (allocator.limit()) text += ", limit " + format_bytes(*allocator.limit());
  return text;
}

}  // namespace vramlab
