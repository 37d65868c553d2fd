// Keeps what a simulated allocator does, as PyTorch's _record_memory_history() keeps it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/memory/allocator_events.hpp"
#include "trace/torch_snapshot.hpp"

namespace vramlab {

/// A history of at most `max_entries`; when it is full, the oldest entry makes room for the new one (R11.7).
class HistoryRecorder : public AllocatorListener {
 public:
  explicit HistoryRecorder(std::size_t max_entries = std::numeric_limits<std::size_t>::max());

  /// The time that entries get from now on, in µs.
  void set_time_us(std::int64_t time_us) { time_us_ = time_us; }
  /// The stack that entries get from now on; 0 = none.
  void set_stack(StackId stack) { stack_ = stack; }

  void on_event(const AllocatorEvent& event) override;

  /// Calls `see` with every entry, the oldest first.
  template <class See>
  void visit(const See& see) const {
    for (std::size_t i = 0; i < ring_.size(); ++i) see(ring_[(oldest_ + i) % ring_.size()]);
  }

  /// Oldest entry first.
  [[nodiscard]] std::vector<TraceEntry> entries() const;
  /// Entries that made room for newer ones.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  std::size_t max_entries_;
  std::vector<TraceEntry> ring_;
  std::size_t oldest_ = 0;
  std::uint64_t lost_ = 0;
  std::int64_t time_us_ = 0;
  StackId stack_ = 0;
};

/// The entry that an event leaves.
TraceEntry trace_entry_of(const AllocatorEvent& event, std::int64_t time_us = 0, StackId stack = 0);

}  // namespace vramlab
