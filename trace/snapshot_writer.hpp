// Writes memory snapshots as torch.cuda.memory._dump_snapshot() of torch 2.11 does (R11.1 to R11.9): the same
// keys, types and order, so that PyTorch's own viewer and every reader of snapshots opens them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/memory/allocator_settings.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "trace/pickle_writer.hpp"
#include "trace/torch_snapshot.hpp"

namespace vramlab {

/// Something that happened beside the allocator: PyTorch's `external_annotations`.
struct SnapshotAnnotation {
  std::string name;
  bool start = true;  ///< stage "START", else "END"
  int device = 0;
  std::int64_t time_us = 0;
};

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
