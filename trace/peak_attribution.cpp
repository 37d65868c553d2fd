#include "trace/peak_attribution.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include "trace/shown_frames.hpp"
#include "trace/whole_history.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;
using BlockState = SnapshotBlock::State;

struct LiveBlock {
  Bytes requested = 0;
  StreamId stream = 0;
  StackId stack = 0;
};
using LiveBlocks = std::unordered_map<Address, LiveBlock>;

std::span<const TraceEntry> trace_of(const TorchSnapshot& snapshot, int device) {
  const auto place = static_cast<std::size_t>(device);
  if (place >= snapshot.traces.size()) return {};
  return snapshot.traces[place];
}

/// What was live before the first entry.
LiveBlocks live_at_start(const TorchSnapshot& snapshot, int device) {
  LiveBlocks initial;
  std::unordered_map<Address, bool> live;  // by address that the history has spoken of
  for (const TraceEntry& entry : trace_of(snapshot, device)) {
    if (entry.action == Action::alloc) live[entry.address] = true;
    const bool ends = entry.action == Action::free_completed;
    if (!ends && entry.action != Action::free_requested) continue;
    const auto [known, first] = live.try_emplace(entry.address, false);
    if (first) initial[entry.address] = {entry.size, entry.stream, entry.stack};
    if (first) known->second = true;
    if (ends) known->second = false;
  }
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == BlockState::inactive || live.contains(block.address)) continue;
      initial[block.address] = {block.requested, segment.stream, block.stack};
    }
  }
  return initial;
}

std::int64_t reserved_before(const TorchSnapshot& snapshot, int device) {
  if (!trace_of(snapshot, device).empty()) return reserved_at_start(snapshot, device);
  std::int64_t reserved = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device) reserved += static_cast<std::int64_t>(segment.total_size);
  }
  return reserved;
}

/// The live blocks and the reserved bytes, moved from entry to entry.
class Walk {
 public:
  Walk(const TorchSnapshot& snapshot, int device)
      : live_(live_at_start(snapshot, device)), reserved_(reserved_before(snapshot, device)) {
    for (const auto& [address, block] : live_) requested_ += block.requested;
  }

  void step(const TraceEntry& entry) {
    switch (entry.action) {
      case Action::alloc:
        live_[entry.address] = {entry.size, entry.stream, entry.stack};
        requested_ += entry.size;
        break;
      case Action::free_completed:
        if (const auto block = live_.find(entry.address); block != live_.end()) {
          requested_ -= block->second.requested;
          live_.erase(block);
        }
        break;
      case Action::segment_alloc:
      case Action::segment_map:
        reserved_ += static_cast<std::int64_t>(entry.size);
        break;
      case Action::segment_free:
      case Action::segment_unmap:
        reserved_ -= static_cast<std::int64_t>(entry.size);
        break;
      default:
        break;
    }
  }

  [[nodiscard]] Bytes requested() const { return requested_; }
  [[nodiscard]] Bytes reserved() const { return static_cast<Bytes>(std::max<std::int64_t>(reserved_, 0)); }
  [[nodiscard]] const LiveBlocks& live() const { return live_; }

 private:
  LiveBlocks live_;
  Bytes requested_ = 0;
  std::int64_t reserved_;
};

std::string frame_name(const TorchSnapshot& snapshot, StackId stack) {
  return shown_frames(snapshot.frames, snapshot.stacks[stack]).front();
}

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

void share_out(const TorchSnapshot& snapshot, const LiveBlocks& live, PeakAttribution& peak) {
  std::map<std::string, PeakShare> frames;
  std::map<int, PeakShare> classes;
  std::map<StreamId, PeakShare> streams;
  for (const auto& [address, block] : live) {
    for (PeakShare* share : {&frames[frame_name(snapshot, block.stack)],
                             &classes[size_class(block.requested)], &streams[block.stream]}) {
      share->bytes += block.requested;
      ++share->blocks;
    }
  }
  peak.by_frame = shares_of(frames, [](const std::string& name) { return name; });
  std::stable_sort(peak.by_frame.begin(), peak.by_frame.end(),
                   [](const PeakShare& a, const PeakShare& b) { return a.bytes > b.bytes; });
  peak.by_size_class = shares_of(classes, class_name);
  peak.by_stream = shares_of(streams, [](StreamId stream) { return std::to_string(stream); });
}

}  // namespace

PeakAttribution attribute_peak(const TorchSnapshot& snapshot, int device) {
  const std::span<const TraceEntry> trace = trace_of(snapshot, device);
  PeakAttribution peak;
  peak.device = device;
  peak.from_history = !trace.empty();
  Walk search{snapshot, device};
  peak.requested = search.requested();
  for (std::size_t i = 0; i < trace.size(); ++i) {
    search.step(trace[i]);
    if (search.requested() <= peak.requested) continue;
    peak.requested = search.requested();
    peak.entry = i + 1;
    peak.time_us = trace[i].time_us;
  }
  Walk walk{snapshot, device};
  for (std::size_t i = 0; i < peak.entry; ++i) walk.step(trace[i]);
  peak.reserved = walk.reserved();
  peak.rest = peak.reserved - std::min(peak.reserved, peak.requested);
  share_out(snapshot, walk.live(), peak);
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
