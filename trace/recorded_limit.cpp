#include "trace/recorded_limit.hpp"

#include <algorithm>

#include "sim/memory/rounding.hpp"
#include "trace/trace_steps.hpp"
#include "trace/whole_history.hpp"

namespace vramlab {
namespace {

void lower(std::optional<Bytes>& least, Bytes value) { least = least ? std::min(*least, value) : value; }

}  // namespace

RecordedLimit recorded_limit(const TorchSnapshot& snapshot, int device) {
  RecordedLimit found;
  const AllocatorSettings settings = allocator_settings_of(snapshot);
  std::int64_t reserved = reserved_at_start(snapshot, device);
  for (const TraceEntry& entry : snapshot.traces.at(static_cast<std::size_t>(device))) {
    if (is_acquisition(entry.action)) reserved += static_cast<std::int64_t>(entry.size);
    if (is_release(entry.action)) reserved -= static_cast<std::int64_t>(entry.size);
    if (entry.action != TraceEntry::Action::oom || reserved < 0) continue;
    const auto held = static_cast<Bytes>(reserved);
    const Bytes wanted = segment_size(entry.size, settings);
    const Bytes device_free = entry.address;
    if (device_free < wanted) {
      lower(found.room, held + device_free);
    } else {
      lower(found.limit, held + wanted - 1);
    }
  }
  return found;
}

}  // namespace vramlab
