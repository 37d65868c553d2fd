#include "recordings/snapshot/peak_attribution.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recordings/snapshot/history.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;
using BlockState = SnapshotBlock::State;

struct LiveBlock {
  Bytes requested = 0;
  StreamId stream = 0;
  StackId stack = 0;  ///< of its allocation
  bool before_recording = false;
};
using LiveBlocks = std::unordered_map<Address, LiveBlock>;

/// What was live before the first entry.
LiveBlocks live_at_start(const TorchSnapshot& snapshot, int device) {
  LiveBlocks initial;
  const bool named = frees_name_allocations(history_of(snapshot, device));
  std::unordered_map<Address, bool> live;  // by address that the history has spoken of
  for (const TraceEntry& entry : history_of(snapshot, device)) {
    if (entry.action == Action::alloc) live[entry.address] = true;
    const bool ends = entry.action == Action::free_completed;
    if (!ends && entry.action != Action::free_requested) continue;
    const auto [known, first] = live.try_emplace(entry.address, false);
    if (first) initial[entry.address] = {entry.size, entry.stream, named ? entry.stack : 0, true};
    if (first) known->second = true;
    if (ends) known->second = false;
  }
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == BlockState::inactive || live.contains(block.address)) continue;
      initial[block.address] = {block.requested, segment.stream, block.stack, true};
    }
  }
  return initial;
}

/// The live blocks and the reserved bytes, moved from entry to entry.
class Walk {
 public:
  Walk(const TorchSnapshot& snapshot, int device)
      : trace_(history_of(snapshot, device)),
        stacks_(snapshot, device),
        live_(live_at_start(snapshot, device)),
        reserved_(reserved_at_start(snapshot, device)) {
    for (const auto& [address, block] : live_) requested_ += block.requested;
  }

  void step(std::size_t i) {
    const TraceEntry& entry = trace_[i];
    reserved_ += reserved_change(entry);
    if (entry.action == Action::alloc) {
      live_[entry.address] = {entry.size, entry.stream, stacks_.at(i), false};
      requested_ += entry.size;
    }
    if (entry.action == Action::free_completed) {
      const auto block = live_.find(entry.address);
      if (block == live_.end()) return;
      requested_ -= block->second.requested;
      live_.erase(block);
    }
  }

  [[nodiscard]] Bytes requested() const { return requested_; }
  [[nodiscard]] Bytes reserved() const { return static_cast<Bytes>(std::max<std::int64_t>(reserved_, 0)); }
  [[nodiscard]] const LiveBlocks& live() const { return live_; }

 private:
  std::span<const TraceEntry> trace_;
  AllocationStacks stacks_;
  LiveBlocks live_;
  Bytes requested_ = 0;
  std::int64_t reserved_;
};

// PyTorch rounds to 512 bytes at least, so smaller ones are one class.
int size_class(Bytes size) { return static_cast<int>(std::bit_width(std::max<Bytes>(size, 512) - 1)); }

std::string class_name(int power) {
  if (power <= 9) return "up to 512 B";
  return "up to " + format_bytes(Bytes{1} << power);
}

template <class Key, class Name>
std::vector<PeakShare> shares_of(const std::map<Key, PeakShare>& by_key, const Name& name) {
  std::vector<PeakShare> shares;
  for (const auto& [key, share] : by_key) {
    shares.push_back(share);
    shares.back().name = name(key);
  }
  return shares;
}

// By address, so that equal snapshots give equal lists.
std::vector<std::pair<Address, LiveBlock>> in_order(const LiveBlocks& live) {
  std::vector<std::pair<Address, LiveBlock>> blocks(live.begin(), live.end());
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return blocks;
}

void share_out(const TorchSnapshot& snapshot, const LiveBlocks& live, const Grouping& grouping,
               PeakAttribution& peak) {
  StackShares groups(snapshot.frames, snapshot.stacks, grouping);
  std::map<int, PeakShare> classes;
  std::map<StreamId, PeakShare> streams;
  for (const auto& [address, block] : in_order(live)) {
    groups.add(block.stack, block.requested, block.before_recording && peak.from_history, false);
    if (block.before_recording && peak.from_history) peak.before_recording += block.requested;
    for (PeakShare* share : {&classes[size_class(block.requested)], &streams[block.stream]}) {
      share->bytes += block.requested;
      ++share->blocks;
    }
  }
  peak.by_group = groups.sorted();
  peak.folded = groups.folded();
  peak.by_size_class = shares_of(classes, class_name);
  peak.by_stream = shares_of(streams, [](StreamId stream) { return std::to_string(stream); });
}

}  // namespace

PeakAttribution attribute_peak(const TorchSnapshot& snapshot, int device, const Grouping& grouping) {
  const std::span<const TraceEntry> trace = history_of(snapshot, device);
  PeakAttribution peak;
  peak.device = device;
  peak.from_history = !trace.empty();
  Walk search{snapshot, device};
  peak.requested = search.requested();
  for (std::size_t i = 0; i < trace.size(); ++i) {
    search.step(i);
    if (search.requested() <= peak.requested) continue;
    peak.requested = search.requested();
    peak.entry = i + 1;
    peak.time_us = trace[i].time_us;
  }
  Walk walk{snapshot, device};
  for (std::size_t i = 0; i < peak.entry; ++i) walk.step(i);
  peak.reserved = walk.reserved();
  peak.rest = peak.reserved - std::min(peak.reserved, peak.requested);
  share_out(snapshot, walk.live(), grouping, peak);
  return peak;
}

std::vector<int> devices_of(const TorchSnapshot& snapshot) {
  std::set<int> devices;
  for (const SnapshotSegment& segment : snapshot.segments) devices.insert(segment.device);
  for (std::size_t device = 0; device < snapshot.traces.size(); ++device) {
    if (!snapshot.traces[device].empty()) devices.insert(static_cast<int>(device));
  }
  return {devices.begin(), devices.end()};
}

}  // namespace vramlab
