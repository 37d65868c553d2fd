#include "plan/buffers.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace vramlab {
namespace {

/// A buffer begins or ends. Of one time, ends come first.
struct Event {
  std::int64_t time;
  bool begins;
  std::uint32_t buffer;
};

std::vector<Event> events_of(const std::vector<Buffer>& buffers) {
  std::vector<Event> events;
  events.reserve(2 * buffers.size());
  Bytes total = 0;
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.lower >= buffer.upper) {
      throw InputError("buffer " + std::to_string(i), "does not end after it begins.");
    }
    if (buffer.size > kMostBufferBytes - total) {
      throw InputError("buffer " + std::to_string(i), "makes more than 2^62 bytes of all buffers.");
    }
    total += buffer.size;
    events.push_back({buffer.lower, true, i});
    events.push_back({buffer.upper, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.begins != b.begins) return b.begins;
    return a.buffer < b.buffer;
  });
  return events;
}

}  // namespace

Timeline timeline_of(const std::vector<Buffer>& buffers) {
  Timeline timeline;
  timeline.spans.resize(buffers.size());
  Bytes alive = 0;
  bool growing = true;
  for (const Event& event : events_of(buffers)) {
    Timeline::Span& span = timeline.spans[event.buffer];
    if (event.begins) {
      growing = true;
      span.begin = static_cast<std::uint32_t>(timeline.load.size());
      alive += buffers[event.buffer].size;
      continue;
    }
    if (growing) timeline.load.push_back(alive);
    growing = false;
    span.end = static_cast<std::uint32_t>(timeline.load.size());
    alive -= buffers[event.buffer].size;
  }
  for (const Bytes load : timeline.load) timeline.peak = std::max(timeline.peak, load);
  return timeline;
}

}  // namespace vramlab
