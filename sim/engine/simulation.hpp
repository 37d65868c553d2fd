// A discrete-event simulation: a queue of events ordered by time, and a clock that jumps from one to the
// next.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"

namespace vramlab {

/// Names one scheduled event; never used twice by one queue.
enum class EventId : std::uint64_t {};

/// A priority queue of `Event` values: a four-ary heap of small keys, the events themselves stay in place.
///
/// Ties in time are broken by the order of `push`, so a run depends on nothing but its input.
template <class Event>
class EventQueue {
 public:
  struct Entry {
    SimTime time{0};
    Event event;
  };

  /// Adds `event` at `time`. Cost O(log n).
  EventId push(SimTime time, Event event) {
    const std::uint32_t slot = take_slot(std::move(event));
    const std::uint64_t id = next_order_++ << kSlotBits | slot;
    slots_[slot].id = id;
    heap_.push_back({});
    sift_up(heap_.size() - 1, {time, id});
    ++live_;
    return EventId{id};
  }

  /// Takes the event out before it happens. False if it already left. Cost O(1): its key stays in the
  /// heap and is passed over later.
  bool cancel(EventId id) {
    const std::uint64_t slot = static_cast<std::uint64_t>(id) & kSlotMask;
    if (slot >= slots_.size() || !slots_[slot].event || EventId{slots_[slot].id} != id) return false;
    slots_[slot].event.reset();
    --live_;
    return true;
  }

  /// The earliest event, removed; empty if none is left. Cost O(log n).
  std::optional<Entry> pop() {
    while (!heap_.empty()) {
      const Key key = heap_.front();
      remove_first();
      const auto slot = static_cast<std::uint32_t>(key.id & kSlotMask);
      free_slots_.push_back(slot);
      std::optional<Event>& event = slots_[slot].event;
      if (!event) continue;  // cancelled
      --live_;
      std::optional<Entry> entry{Entry{key.time, std::move(*event)}};
      event.reset();
      return entry;
    }
    return std::nullopt;
  }

  /// Number of events that will still leave.
  [[nodiscard]] std::size_t size() const { return live_; }

 private:
  static constexpr unsigned kSlotBits = 24;  // 16 million events at once, 2^40 in a run
  static constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;
  static constexpr std::size_t kArity = 4;  // children share a cache line or two

  struct Key {
    SimTime time{0};
    std::uint64_t id = 0;  ///< its order, and in the low bits its slot
  };
  struct Slot {
    std::optional<Event> event;
    std::uint64_t id = 0;
  };

  static bool before(const Key& a, const Key& b) { return a.time != b.time ? a.time < b.time : a.id < b.id; }

  std::uint32_t take_slot(Event&& event) {
    if (free_slots_.empty()) {
      slots_.push_back({std::move(event), 0});
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot].event.emplace(std::move(event));
    return slot;
  }

  void remove_first() {
    const Key last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
  }

  // Puts `key` at the empty place `i`, or above it.
  void sift_up(std::size_t i, const Key& key) {
    while (i > 0) {
      const std::size_t parent = (i - 1) / kArity;
      if (!before(key, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = key;
  }

  void sift_down(const Key& key) {
    std::size_t i = 0;
    for (;;) {
      const std::size_t first = kArity * i + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = first + kArity < heap_.size() ? first + kArity : heap_.size();
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (before(heap_[child], heap_[least])) least = child;
      }
      if (!before(heap_[least], key)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = key;
  }

  std::vector<Key> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t next_order_ = 0;
  std::size_t live_ = 0;
};

/// Beyond it times are not told any more: 253 years. What is added to a time below it still fits 64 bits.
inline constexpr SimTime kLastMoment{8'000'000'000'000'000'000};

/// Clock and queue in one object; any number of them can live side by side.
template <class Event>
class Simulation {
 public:
  /// The clock stands at `start` before the first event.
  explicit Simulation(SimTime start = SimTime{0}) : now_(start) {}

  /// The time of the event being handled, or of the last one.
  [[nodiscard]] SimTime now() const { return now_; }

  /// Schedules `event` to happen `delay` after now. Throws InternalError for a negative delay, and InputError
  /// for a time beyond kLastMoment.
  EventId schedule(SimTime delay, Event event) {
    if (delay < SimTime{0}) throw InternalError("an event was scheduled in the past");
    if (delay > kLastMoment - now_) {
      throw InputError("",
                       "the run would last longer than 250 years, the most that can be simulated. Give "
                       "shorter durations, or fewer of them.");
    }
    return queue_.push(now_ + delay, std::move(event));
  }

  bool cancel(EventId id) { return queue_.cancel(id); }

  /// Number of events still to come, without the one being handled.
  [[nodiscard]] std::size_t pending() const { return queue_.size(); }

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
