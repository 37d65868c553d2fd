#include "sim/memory/caching/pending_events.hpp"

#include <algorithm>
#include <utility>

namespace vramlab {

void PendingEvents::record(BlockIndex block, std::vector<StreamId> streams) {
  for (const StreamId stream : streams) queues_[stream].push_back({next_order_++, block});
  const std::size_t left = streams.size();
  frees_.insert_or_assign(block, Free{std::move(streams), left, false});
}

void PendingEvents::finish(BlockIndex block) {
  const auto found = frees_.find(block);
  if (found == frees_.end()) return;
  found->second.finished = true;
  ready_.insert(found->second.streams.begin(), found->second.streams.end());
}

void PendingEvents::finish_stream(StreamId stream) {
  if (!queues_.contains(stream)) return;
  finished_before_[stream] = next_order_;
  ready_.insert(stream);
}

void PendingEvents::finish_all() {
  if (std::exchange(all_finished_before_, next_order_) == next_order_) return;
  for (const auto& [stream, queue] : queues_) ready_.insert(stream);
}

std::vector<BlockIndex> PendingEvents::take_finished() {
  std::vector<Queued> taken;
  for (const StreamId stream : std::exchange(ready_, {})) {
    const auto found = queues_.find(stream);
    if (found == queues_.end()) continue;
    std::deque<Queued>& queue = found->second;
    while (!queue.empty()) {
      ++inspected_;
      if (!is_finished(stream, queue.front())) break;
      taken.push_back(queue.front());
      queue.pop_front();
    }
    if (queue.empty()) queues_.erase(found);
  }
  std::sort(taken.begin(), taken.end(), [](const Queued& a, const Queued& b) { return a.order < b.order; });
  std::vector<BlockIndex> blocks;
  for (const Queued& event : taken) {
    blocks.push_back(event.block);
    const auto waiting = frees_.find(event.block);
    if (--waiting->second.left == 0) frees_.erase(waiting);
  }
  return blocks;
}

std::vector<PendingEvent> PendingEvents::in_order() const {
  std::vector<PendingEvent> events;
  for (const auto& [stream, queue] : queues_) {
    for (const Queued& event : queue)
      events.push_back({event.order, stream, event.block, is_finished(stream, event)});
  }
  std::sort(events.begin(), events.end(),
            [](const PendingEvent& a, const PendingEvent& b) { return a.order < b.order; });
  return events;
}

}  // namespace vramlab
