// What the tests of the allocator share: a card with nothing else on it, and short ways to ask and look.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/segments/segment_source.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {

inline AllocatorOptions with_settings(const std::string& conf, std::optional<Bytes> limit = {}) {
  return {.settings = parse_allocator_settings(conf), .limit = limit, .free_list = FreeListKind::binned};
}

/// A card of `total` bytes without a context, and one allocator on it.
struct Rig {
  explicit Rig(Bytes total = 80_GiB, AllocatorOptions options = {})
      : card(total, 0), segments(card), allocator(segments, std::move(options)) {}
  Rig(Bytes total, const std::string& conf) : Rig(total, with_settings(conf)) {}

  /// An allocation that must succeed.
  BlockId take(Bytes size, StreamId stream = kDefaultStream) {
    const AllocationResult result = allocator.allocate(size, stream);
    if (!result) {
      ADD_FAILURE() << "out of memory for " << size << " bytes";
      return kNullBlock;
    }
    return result->block;
  }

  void give(BlockId block) { allocator.free(block); }

  void give_all(const std::vector<BlockId>& blocks) {
    for (const BlockId block : blocks) allocator.free(block);
  }

  /// Whether an allocation fails; if it does not, it is kept.
  bool fails(Bytes size) { return !allocator.allocate(size, kDefaultStream); }

  [[nodiscard]] const MemoryStats& stats() const { return allocator.stats(); }
  [[nodiscard]] Bytes allocated() const { return current(stats().allocated_bytes); }
  [[nodiscard]] Bytes reserved() const { return current(stats().reserved_bytes); }
  [[nodiscard]] Bytes requested() const { return current(stats().requested_bytes); }
  [[nodiscard]] Bytes active() const { return current(stats().active_bytes); }
  [[nodiscard]] Bytes inactive_split_bytes() const { return current(stats().inactive_split_bytes); }
  [[nodiscard]] std::int64_t inactive_splits() const { return stats().inactive_split.all().current; }
  [[nodiscard]] std::int64_t segment_count() const { return stats().segment.all().current; }

  static Bytes current(const StatArray& stat) { return static_cast<Bytes>(stat.all().current); }

  void expect_sound() const {
    for (const std::string& broken : validate(allocator)) ADD_FAILURE() << broken;
  }

  SimulatedCard card;
  SimSegments segments;
  CachingAllocator allocator;
};

/// Keeps the history of an allocator.
struct History : AllocatorListener {
  void on_event(const AllocatorEvent& event) override { events.push_back(event); }

  [[nodiscard]] std::vector<AllocatorEvent::Action> actions() const {
    std::vector<AllocatorEvent::Action> list;
    for (const AllocatorEvent& event : events) list.push_back(event.action);
    return list;
  }

  std::vector<AllocatorEvent> events;
};

/// Refuses the n-th request for memory (cudaMalloc or mapping), counted from 1, and serves all others.
class FailOnNth : public SegmentAdaptor {
 public:
  FailOnNth(SegmentSource& inner, int n) : SegmentAdaptor(inner), left_(n) {}

  std::optional<Address> reserve(Bytes size) override {
    return fails() ? std::nullopt : SegmentAdaptor::reserve(size);
  }
  bool map(Address address, Bytes size) override { return !fails() && SegmentAdaptor::map(address, size); }

 private:
  bool fails() { return --left_ == 0; }

  int left_;
};

}  // namespace vramlab
