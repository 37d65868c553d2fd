#include "trace/history_recorder.hpp"

#include <algorithm>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

TraceEntry::Action action_of(AllocatorEvent::Action action) {
  using Event = AllocatorEvent::Action;
  using Entry = TraceEntry::Action;
  switch (action) {
    case Event::alloc:
      return Entry::alloc;
    case Event::free_requested:
      return Entry::free_requested;
    case Event::free_completed:
      return Entry::free_completed;
    case Event::segment_alloc:
      return Entry::segment_alloc;
    case Event::segment_free:
      return Entry::segment_free;
    case Event::segment_map:
      return Entry::segment_map;
    case Event::segment_unmap:
      return Entry::segment_unmap;
    case Event::oom:
      return Entry::oom;
  }
  throw InternalError("an allocator event without a name");
}

}  // namespace

TraceEntry trace_entry_of(const AllocatorEvent& event, std::int64_t time_us, StackId stack) {
  TraceEntry entry;
  entry.address = event.address;
  entry.size = event.size;
  entry.stream = event.stream;
  entry.time_us = time_us;
  entry.stack = stack;
  entry.action = action_of(event.action);
  return entry;
}

HistoryRecorder::HistoryRecorder(std::size_t max_entries)
    : max_entries_(std::max<std::size_t>(max_entries, 1)) {}

void HistoryRecorder::on_event(const AllocatorEvent& event) {
  const TraceEntry entry = trace_entry_of(event, time_us_, stack_);
  if (ring_.size() < max_entries_) {
    ring_.push_back(entry);
    return;
  }
  ring_[oldest_] = entry;
  oldest_ = (oldest_ + 1) % max_entries_;
  ++lost_;
}

std::vector<TraceEntry> HistoryRecorder::entries() const {
  std::vector<TraceEntry> ordered(ring_);
  std::rotate(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>(oldest_), ordered.end());
  return ordered;
}

}  // namespace vramlab
