// The events that deferred frees wait for.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "sim/memory/caching/blocks.hpp"

namespace vramlab {

/// An event on a stream that a deferred free waits for (R3.4).
struct PendingEvent {
  std::uint64_t order = 0;  ///< rises from event to event
  StreamId stream = 0;
  BlockIndex block = kNoBlock;
  bool finished = false;
};

/// All that were recorded and not taken, in a queue for each stream. A free has all its events at once.
class PendingEvents {
 public:
  /// The free of `block`, which has no events here, waits for these streams.
  void record(BlockIndex block, std::vector<StreamId> streams);

  /// All events of a block are finished, all of a stream, or all there are.
  void finish(BlockIndex block);
  void finish_stream(StreamId stream);
  void finish_all();

  /// Takes every finished event with none before it in its queue that is not (R3.8). Their blocks in the
  /// order in which the events were recorded.
  std::vector<BlockIndex> take_finished();

  /// Whether take_finished() may find any; O(1), as every allocation asks.
  [[nodiscard]] bool any_finished() const { return !ready_.empty(); }

  [[nodiscard]] bool empty() const { return frees_.empty(); }
  /// In the order in which they were recorded.
  [[nodiscard]] std::vector<PendingEvent> in_order() const;

  /// Events that take_finished() has looked at so far: the work done.
  [[nodiscard]] std::uint64_t inspected() const { return inspected_; }

 private:
  struct Queued {
    std::uint64_t order = 0;
    BlockIndex block = kNoBlock;
  };
  struct Free {
    std::vector<StreamId> streams;  ///< of its events
    std::size_t left = 0;           ///< events not taken
    bool finished = false;
  };
  [[nodiscard]] bool is_finished(StreamId stream, const Queued& event) const {
    if (event.order < all_finished_before_ || frees_.at(event.block).finished) return true;
    const auto done = finished_before_.find(stream);
    return done != finished_before_.end() && event.order < done->second;
  }

  std::map<StreamId, std::deque<Queued>> queues_;  ///< none is empty
  std::map<BlockIndex, Free> frees_;
  std::set<StreamId> ready_;  ///< queues of which an event was finished since they were looked at
  std::uint64_t next_order_ = 0;
  std::uint64_t all_finished_before_ = 0;
  std::map<StreamId, std::uint64_t> finished_before_;  ///< of streams that were waited for alone
  std::uint64_t inspected_ = 0;
};

}  // namespace vramlab
