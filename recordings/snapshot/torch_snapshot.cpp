#include "recordings/snapshot/torch_snapshot.hpp"

#include <algorithm>
#include <array>
#include <bit>

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

WriterVersion writer_version(const TorchSnapshot& snapshot) {
  const TorchVersion pools_in_entries = version_rule(TorchRule::pools_in_entries).from;  // R11.3
  if (snapshot.torch) return {*snapshot.torch, "given"};
  TorchVersion least = first_version_with(snapshot.settings.conf.value_or(""));
  for (const std::vector<TraceEntry>& trace : snapshot.traces) {
    if (!trace.empty() && trace.front().pool >= 0) least = std::max(least, pools_in_entries);
  }
  if (least > TorchVersion{}) return {least, "inferred"};
  return {};
}

AllocatorSettings allocator_settings_of(const TorchSnapshot& snapshot, std::vector<std::string>* warnings) {
  const SnapshotSettings& recorded = snapshot.settings;
  const auto warn = [&](const std::string& key, const std::string& what) {
    if (warnings != nullptr) warnings->push_back("/allocator_settings/" + key + ": " + what);
  };
  std::vector<std::string> unread;
  AllocatorSettings settings =
      parse_recorded_settings(recorded.conf.value_or(""), writer_version(snapshot).torch, unread);
  for (const std::string& item : unread) {
    warn("PYTORCH_CUDA_ALLOC_CONF", item + " It is passed over; the values beside the string count.");
  }
  for (const std::string& key : keys_without_effect(recorded.conf.value_or(""))) {
    warn("PYTORCH_CUDA_ALLOC_CONF", key);
  }
  if (recorded.max_split_size) {
    settings.max_split_size =
        *recorded.max_split_size < 0 ? kUnlimited : static_cast<Bytes>(*recorded.max_split_size);
  }
  if (const auto threshold = recorded.garbage_collection_threshold) {
    if (*threshold >= 0 && *threshold < 1) {
      settings.garbage_collection_threshold = *threshold;
    } else {
      warn("garbage_collection_threshold", "is not from 0 to 1; it is passed over.");
    }
  }
  if (recorded.expandable_segments) settings.expandable_segments = *recorded.expandable_segments;
  const std::vector<std::uint64_t>& divisions = recorded.roundup_power2_divisions;
  const auto is_no_power = [](std::uint64_t count) { return count != 0 && !std::has_single_bit(count); };
  const auto bad = std::find_if(divisions.begin(), divisions.end(), is_no_power);
  if (bad != divisions.end()) {
    warn("roundup_power2_divisions", std::to_string(*bad) + " is not a power of two; they are passed over.");
  } else if (divisions.size() == settings.roundup_power2_divisions.size()) {
    std::copy(divisions.begin(), divisions.end(), settings.roundup_power2_divisions.begin());
  }
  return settings;
}

std::vector<std::string> snapshot_notes(const TorchSnapshot& snapshot) {
  std::vector<std::string> notes;
  if (snapshot.settings.trace_overflowed.value_or(false)) {
    const auto most = snapshot.settings.trace_max_entries;
    notes.push_back(
        "The history lost its oldest entries" +
        (most ? ": it holds " + std::to_string(*most) + " at most (max_entries of _record_memory_history)."
              : std::string(".")));
  }
  if (snapshot.host) {
    const SnapshotHost& host = *snapshot.host;
    notes.push_back("Pinned memory of the host: " + format_bytes(host.bytes) + " in " +
                    std::to_string(host.segments) + " segments, " + format_bytes(host.in_use) + " in use, " +
                    std::to_string(host.entries) +
                    " entries of its history. It is not of the card, and not replayed.");
  }
  if (snapshot.forward_stacks > 0) {
    notes.push_back(
        std::to_string(snapshot.forward_stacks) +
        " entries also name where in the forward pass their backward began; only their own stacks are used.");
  }
  return notes;
}

std::vector<std::string> file_warnings(const TorchSnapshot& snapshot, const std::string& file) {
  std::vector<std::string> warnings = snapshot.warnings;
  std::vector<std::string> of_settings;
  allocator_settings_of(snapshot, &of_settings);
  for (const std::string& warning : of_settings) warnings.push_back(file + ": " + warning);
  return warnings;
}

}  // namespace vramlab
