#include "lab/judge/settings.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vramlab {
namespace {

using S = AllocatorSettings;

std::string size_text(Bytes size) { return size == kUnlimited ? "unlimited" : format_bytes(size); }
std::string switch_text(bool on) { return on ? "True" : "False"; }
std::string share_text(double share) { return share == 0 ? "off" : fmt::format("{}", share); }

std::string divisions_text(const std::array<std::uint64_t, 16>& divisions) {
  const auto same = std::ranges::all_of(divisions, [&](std::uint64_t one) { return one == divisions[0]; });
  if (same) return divisions[0] == 0 ? "off" : std::to_string(divisions[0]);
  return fmt::format("[{}]", fmt::join(divisions, ","));
}

/// A key: how it is shown, and how its value goes from one settings to others.
struct Key {
  const char* name;
  std::string (*text)(const S&);
  void (*copy)(const S& from, S& to);
};

template <auto Member, auto Text>
constexpr Key key(const char* name) {
  return {name, [](const S& settings) { return Text(settings.*Member); },
          [](const S& from, S& to) { to.*Member = from.*Member; }};
}

std::string backend_text(AllocatorBackend backend) {
  return backend == AllocatorBackend::native ? "native" : "cudaMallocAsync";
}

constexpr std::array kKeys{
    key<&S::max_split_size, size_text>("max_split_size_mb"),
    key<&S::max_non_split_rounding, size_text>("max_non_split_rounding_mb"),
    key<&S::large_segment_size, size_text>("large_segment_size_mb"),
    key<&S::roundup_power2_divisions, divisions_text>("roundup_power2_divisions"),
    key<&S::garbage_collection_threshold, share_text>("garbage_collection_threshold"),
    key<&S::expandable_segments, switch_text>("expandable_segments"),
    key<&S::per_process_memory_fraction, share_text>("per_process_memory_fraction"),
    key<&S::graph_capture_record_stream_reuse, switch_text>("graph_capture_record_stream_reuse"),
    key<&S::throw_on_cudamalloc_oom, switch_text>("throw_on_cudamalloc_oom"),
    key<&S::backend, backend_text>("backend")};

}  // namespace

std::vector<SettingChange> setting_changes(const AllocatorSettings& golden, const AllocatorSettings& now) {
  std::vector<SettingChange> changes;
  for (const Key& key : kKeys) {
    AllocatorSettings reverted = now;
    key.copy(golden, reverted);
    if (reverted == now) continue;
    AllocatorSettings applied = golden;
    key.copy(now, applied);
    changes.push_back(
        {key.name, fmt::format("{} -> {}", key.text(golden), key.text(now)), reverted, applied});
  }
  return changes;
}

}  // namespace vramlab
