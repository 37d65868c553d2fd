// The keys of a snapshot that are looked at, and a history while it is being read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab::snapshot_reading {

// Every key that is read, whatever dict it belongs to. Each text of a document is looked up once, and after
// that a key is its place in this list; 0 = unknown.
inline constexpr std::array<std::string_view, 44> kKeys{
    "",
    "segments",
    "device_traces",
    "allocator_settings",
    "device",
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "stream",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "state",
    "history",
    "real_size",
    "action",
    "addr",
    "device_free",
    "size",
    "time_us",
    "pool_id",
    "frames",
    "name",
    "filename",
    "line",
    "PYTORCH_CUDA_ALLOC_CONF",
    "max_split_size",
    "garbage_collection_threshold",
    "expandable_segments",
    "roundup_power2_divisions",
    "external_annotations",
    "stage",
    "user_metadata",
    "compile_context",
    "PYTORCH_ALLOC_CONF",
    "trace_alloc_overflowed",
    "trace_alloc_max_entries",
    "host_segments",
    "host_traces",
    "forward_frames",
    "made_without_card",
};
using SnapshotKey = std::uint8_t;

constexpr SnapshotKey field_named(std::string_view key) {
  const auto* const found = std::find(kKeys.begin(), kKeys.end(), key);
  return found == kKeys.end() ? SnapshotKey{0} : static_cast<SnapshotKey>(found - kKeys.begin());
}

// A key that the list lacks does not compile.
consteval SnapshotKey known(std::string_view key) {
  return field_named(key) != 0 ? field_named(key) : throw key;
}

/// A history that is being read, of a length that is not known yet: grows without copying what it holds, and
/// becomes a vector without needing the memory twice.
class TraceEntries {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }

  void push_back(const TraceEntry& entry) {
    if (chunks_.empty() || chunks_.back().size() == kChunk) {
      chunks_.emplace_back();
      if (chunks_.size() > 1) chunks_.back().reserve(kChunk);  // the first one grows as it may
    }
    chunks_.back().push_back(entry);
    ++size_;
  }

  /// All entries; none are left.
  std::vector<TraceEntry> take() {
    const std::size_t size = std::exchange(size_, 0);
    if (chunks_.size() == 1) return std::move(std::exchange(chunks_, {}).front());
    std::vector<TraceEntry> all;
    all.reserve(size);
    for (std::vector<TraceEntry>& chunk : chunks_) {
      all.insert(all.end(), chunk.begin(), chunk.end());
      std::vector<TraceEntry>().swap(chunk);
    }
    chunks_.clear();
    return all;
  }

 private:
  static constexpr std::size_t kChunk = 1 << 20;  // large enough to go back to the system at once

  std::vector<std::vector<TraceEntry>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace vramlab::snapshot_reading
