#include "trace/reserved_ranges.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/memory/rounding.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;
using Key = std::tuple<StreamId, bool, SnapshotPool>;

/// One reserved range, as far as it is mapped.
struct Reserved {
  Address base = 0;
  Address end = 0;  ///< of the highest byte that was ever mapped
  std::int64_t mapped = 0;
};

// What is mapped is for the request that follows.
std::optional<bool> is_for_large(const std::vector<TraceEntry>& trace, std::size_t map,
                                 const AllocatorSettings& settings) {
  for (std::size_t i = map + 1; i < trace.size(); ++i) {
    const Action action = trace[i].action;
    if (action != Action::alloc && action != Action::oom) continue;
    return !is_small(rounded_size(std::max<Bytes>(trace[i].size, 1), settings));
  }
  return std::nullopt;
}

}  // namespace

std::vector<Address> find_bases(const TorchSnapshot& snapshot, int device, const AllocatorSettings& settings,
                                const std::vector<SnapshotSegment>& segments) {
  std::map<Key, Reserved> ranges;
  for (const SnapshotSegment& segment : segments) {
    if (!segment.expandable) continue;
    const Address end = segment.address + segment.total_size;
    const auto [range, is_new] =
        ranges.try_emplace({segment.stream, segment.large, segment.pool}, Reserved{segment.address, end, 0});
    range->second.base = std::min(range->second.base, segment.address);
    range->second.end = std::max(range->second.end, end);
    range->second.mapped += static_cast<std::int64_t>(segment.total_size);
  }
  const std::vector<TraceEntry>& trace = snapshot.traces[static_cast<std::size_t>(device)];
  for (std::size_t i = 0; i < trace.size() && !ranges.empty(); ++i) {
    const TraceEntry& entry = trace[i];
    if (entry.action == Action::segment_unmap) {
      for (auto& [key, range] : ranges) {
        if (std::get<StreamId>(key) != entry.stream || range.mapped == 0) continue;
        if (entry.address >= range.base && entry.address < range.end) {
          range.mapped -= static_cast<std::int64_t>(entry.size);
          break;
        }
      }
    }
    if (entry.action != Action::segment_map) continue;
    const auto large = is_for_large(trace, i, settings);
    for (auto& [key, range] : ranges) {
      const auto& [stream, range_large, pool] = key;
      const bool same_pool = entry.pool < 0 || snapshot.pools[static_cast<std::size_t>(entry.pool)] == pool;
      if (range.mapped <= 0 || stream != entry.stream || range_large != large || !same_pool) continue;
      range.base = std::min(range.base, entry.address);
      range.end = std::max(range.end, entry.address + entry.size);
      range.mapped += static_cast<std::int64_t>(entry.size);
      break;
    }
  }

  std::vector<Address> bases;
  for (const SnapshotSegment& segment : segments) {
    bases.push_back(segment.expandable ? ranges.at({segment.stream, segment.large, segment.pool}).base
                                       : segment.address);
  }
  return bases;
}

}  // namespace vramlab
