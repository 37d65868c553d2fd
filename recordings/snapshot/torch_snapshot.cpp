#include "recordings/snapshot/torch_snapshot.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "core/error.hpp"

namespace vramlab {

const char* name_of(TraceEntry::Action action) {
  constexpr std::array kNames{"alloc",        "free_requested", "free_completed", "segment_alloc",
                              "segment_free", "segment_map",    "segment_unmap",  "oom",
                              "snapshot",     "other"};
  return kNames[static_cast<std::size_t>(action)];
}

const char* name_of(SnapshotBlock::State state) {
  constexpr std::array kNames{"active_allocated", "active_pending_free", "inactive"};
  return kNames[static_cast<std::size_t>(state)];
}

AllocatorSettings allocator_settings_of(const TorchSnapshot& snapshot) {
  const SnapshotSettings& recorded = snapshot.settings;
  AllocatorSettings settings = parse_allocator_settings(recorded.conf.value_or(""));
  if (recorded.max_split_size) {
    settings.max_split_size =
        *recorded.max_split_size < 0 ? kUnlimited : static_cast<Bytes>(*recorded.max_split_size);
  }
  if (const auto threshold = recorded.garbage_collection_threshold) {
    if (!(*threshold >= 0 && *threshold < 1)) {
      throw InputError("/allocator_settings/garbage_collection_threshold", "is not from 0 to 1.");
    }
    settings.garbage_collection_threshold = *threshold;
  }
  if (recorded.expandable_segments) settings.expandable_segments = *recorded.expandable_segments;
  const std::vector<std::uint64_t>& divisions = recorded.roundup_power2_divisions;
  if (divisions.size() == settings.roundup_power2_divisions.size()) {
    for (const std::uint64_t count : divisions) {
      if (count == 0 || std::has_single_bit(count)) continue;
      throw InputError("/allocator_settings/roundup_power2_divisions",
                       std::to_string(count) + " is not a power of two.");
    }
    std::copy(divisions.begin(), divisions.end(), settings.roundup_power2_divisions.begin());
  }
  return settings;
}

}  // namespace vramlab
