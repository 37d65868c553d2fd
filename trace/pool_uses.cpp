#include "trace/pool_uses.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "trace/trace_steps.hpp"

namespace vramlab {
namespace {

/// A final segment of a private pool, and since when it has been there.
struct PrivateRange {
  Address end = 0;
  std::size_t since = 0;
  SnapshotPool pool;
};

class PrivateRanges {
 public:
  PrivateRanges(const TorchSnapshot& snapshot, int device, std::span<const TraceEntry> trace) {
    std::vector<std::size_t> changes;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      if (is_acquisition(trace[i].action) || is_release(trace[i].action)) changes.push_back(i);
    }
    for (const SnapshotSegment& segment : snapshot.segments) {
      if (segment.device != device || segment.pool.is_default()) continue;
      const Address end = segment.address + segment.total_size;
      ranges_[segment.address] = {end, beginning_of(segment.address, end, trace, changes), segment.pool};
    }
  }

  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  [[nodiscard]] std::optional<SnapshotPool> pool_at(Address address, std::size_t entry) const {
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return std::nullopt;
    --range;
    if (address >= range->second.end || entry < range->second.since) return std::nullopt;
    return range->second.pool;
  }

 private:
  // An address may have been another segment before: what counts is the first piece that stayed. If not all
  // of it was acquired since, the history begins with it.
  static std::size_t beginning_of(Address start, Address end, std::span<const TraceEntry> trace,
                                  std::span<const std::size_t> changes) {
    std::size_t beginning = trace.size();
    Bytes acquired = 0;
    for (std::size_t i = changes.size(); i-- > 0;) {
      const TraceEntry& entry = trace[changes[i]];
      if (entry.address >= end || entry.address + entry.size <= start) continue;
      if (is_release(entry.action)) return beginning;
      beginning = changes[i];
      acquired += entry.size;
    }
    return acquired < end - start ? 0 : beginning;
  }

  std::map<Address, PrivateRange> ranges_;
};

}  // namespace

std::vector<PoolUse> find_pool_uses(const TorchSnapshot& snapshot, int device) {
  const std::span<const TraceEntry> trace = snapshot.traces.at(static_cast<std::size_t>(device));
  const PrivateRanges ranges(snapshot, device, trace);
  if (ranges.empty() && snapshot.pools.size() == 1) return {};

  std::vector<PoolUse> uses;
  std::map<StreamId, std::size_t> open;  // use of each stream that goes on
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceEntry& entry = trace[i];
    std::optional<SnapshotPool> pool = ranges.pool_at(entry.address, i);
    if (entry.pool >= 0) pool = snapshot.pools[static_cast<std::size_t>(entry.pool)];
    const bool is_private = pool && !pool->is_default();
    if (is_release(entry.action) && !is_private) open.clear();
    if (entry.action != TraceEntry::Action::alloc) continue;

    const auto use = open.find(entry.stream);
    if (!is_private) {
      if (use != open.end()) open.erase(use);
    } else if (use != open.end() && uses[use->second].pool == *pool) {
      uses[use->second].last = i;
    } else {
      open[entry.stream] = uses.size();
      uses.push_back({*pool, entry.stream, i, i});
    }
  }
  return uses;
}

}  // namespace vramlab
