// Keeps what a simulated allocator does, and writes it as a memory snapshot.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "recordings/pickle/pickle.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/caching/caching_allocator.hpp"

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

 protected:
  /// The entry that an event leaves now.
  [[nodiscard]] TraceEntry entry_of(const AllocatorEvent& event) const;

 private:
  std::size_t max_entries_;
  std::vector<TraceEntry> ring_;
  std::size_t oldest_ = 0;
  std::uint64_t lost_ = 0;
  std::int64_t time_us_ = 0;
  StackId stack_ = 0;
};

/// Hands every entry on and keeps none.
class PassedHistory final : public HistoryRecorder {
 public:
  explicit PassedHistory(std::function<void(const TraceEntry&)> see) : see_(std::move(see)) {}
  void on_event(const AllocatorEvent& event) override { see_(entry_of(event)); }

 private:
  std::function<void(const TraceEntry&)> see_;
};

/// The entry that an event leaves.
TraceEntry trace_entry_of(const AllocatorEvent& event, std::int64_t time_us = 0, StackId stack = 0);

// Writes memory snapshots as torch.cuda.memory._dump_snapshot() of torch 2.11 does (R11.1 to R11.9): the same
// keys, types and order, so that PyTorch's own viewer and every reader of snapshots opens them.

/// One snapshot, written while its history is pushed: only the current 64 KiB are in memory, beside one
/// number for each distinct stack. Calls in this order: the constructor, which writes the segments;
/// begin_device() for each device in turn, from device 0 on, and add() for its entries; finish().
class SnapshotWriter {
 public:
  /// `around` gives segments, stacks and frames; its history is not looked at. It must outlive the writer.
  SnapshotWriter(ByteSink sink, const TorchSnapshot& around, std::size_t devices = 1);
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  /// The next device's history begins; one without entries is written as empty.
  void begin_device();
  void add(const TraceEntry& entry);

  /// Everything behind the history.
  void finish(const AllocatorSettings& settings, std::span<const SnapshotAnnotation> annotations = {});
  /// The same with annotations that are made when they are written: `annotation(0)` to `annotation(count −
  /// 1)`.
  void finish(const AllocatorSettings& settings, std::size_t count,
              const std::function<SnapshotAnnotation(std::size_t)>& annotation);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The whole snapshot.
void write_torch_snapshot(const TorchSnapshot& snapshot, const ByteSink& sink,
                          std::span<const SnapshotAnnotation> annotations = {});

/// What `allocator` holds now, as the segments of a snapshot without history. `pools` tells how to name its
/// private pools; others are named (0, number), as MemPools are.
TorchSnapshot snapshot_of(const CachingAllocator& allocator, int device = 0,
                          std::map<PoolId, SnapshotPool> pools = {});

}  // namespace vramlab
