// A discrete-event simulation: a clock that jumps from event to event.
#pragma once

#include <utility>

#include "core/error.hpp"
#include "sim/engine/event_queue.hpp"

namespace vramlab {

/// Clock and queue in one object; any number of them can live side by side.
template <class Event>
class Simulation {
 public:
  /// The clock stands at `start` before the first event.
  explicit Simulation(SimTime start = SimTime{0}) : now_(start) {}

  /// The time of the event being handled, or of the last one.
  [[nodiscard]] SimTime now() const { return now_; }

  /// Schedules `event` to happen `delay` after now. Throws InternalError for a negative delay.
  EventId schedule(SimTime delay, Event event) {
    if (delay < SimTime{0}) throw InternalError("an event was scheduled in the past");
    return queue_.push(now_ + delay, std::move(event));
  }

  bool cancel(EventId id) { return queue_.cancel(id); }

  /// Hands the events to `handle(Event)` in order until none is left or `stop` is called.
  template <class Handler>
  void run(Handler&& handle) {
    stopped_ = false;
    while (!stopped_) {
      auto entry = queue_.pop();
      if (!entry) return;
      now_ = entry->time;
      handle(std::move(entry->event));
    }
  }

  /// Ends `run` after the event being handled; the rest stays queued.
  void stop() { stopped_ = true; }

 private:
  EventQueue<Event> queue_;
  SimTime now_;
  bool stopped_ = false;
};

}  // namespace vramlab
