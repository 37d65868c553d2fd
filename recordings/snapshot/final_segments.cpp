#include "recordings/snapshot/final_segments.hpp"

#include <utility>
#include <vector>

namespace vramlab {
namespace {

using State = SnapshotBlock::State;

State state_of(BlockState state) {
  if (state == BlockState::allocated) return State::active_allocated;
  return state == BlockState::pending_free ? State::active_pending_free : State::inactive;
}

void add_block(SnapshotSegment& run, const BlockView& view) {
  const SnapshotBlock block{view.address, view.size, view.requested, state_of(view.state), 0};
  run.total_size += block.size;
  if (block.state == State::active_allocated) run.allocated_size += block.size;
  if (block.state != State::inactive) {
    run.active_size += block.size;
    run.requested_size += block.requested;
  }
  run.blocks.push_back(block);
}

std::string text(const SnapshotPool& pool) {
  return '(' + std::to_string(pool.first) + ", " + std::to_string(pool.second) + ')';
}

/// Collects what differs.
class Comparison {
 public:
  explicit Comparison(bool stale_sizes) : stale_sizes_(stale_sizes) {}

  SegmentComparison result;

  void compare(const SnapshotSegment& recorded, const SnapshotSegment& simulated) {
    equal_ = true;
    place_ = " of the segment at " + std::to_string(recorded.address);
    number("total_size", recorded.total_size, simulated.total_size);
    number("allocated_size", recorded.allocated_size, simulated.allocated_size);
    number("active_size", recorded.active_size, simulated.active_size);
    number("requested_size", recorded.requested_size, simulated.requested_size);
    number("stream", recorded.stream, simulated.stream);
    value("segment_type", recorded.large ? "large" : "small", simulated.large ? "large" : "small");
    value("is_expandable", recorded.expandable ? "True" : "False", simulated.expandable ? "True" : "False");
    value("segment_pool_id", text(recorded.pool), text(simulated.pool));
    number("number of blocks", recorded.blocks.size(), simulated.blocks.size());
    if (!equal_) ++result.segment_mismatches;
    for (std::size_t i = 0; i < recorded.blocks.size(); ++i) {
      ++result.blocks;
      equal_ = i < simulated.blocks.size();
      if (equal_) compare(recorded.blocks[i], simulated.blocks[i]);
      if (!equal_) ++result.block_mismatches;
    }
  }

  void only_recorded(const SnapshotSegment& segment) {
    result.block_mismatches += segment.blocks.size();
    result.blocks += segment.blocks.size();
    one_sided(segment, "present", "absent");
  }

  void only_simulated(const SnapshotSegment& segment) { one_sided(segment, "absent", "present"); }

 private:
  void one_sided(const SnapshotSegment& segment, const char* recorded, const char* simulated) {
    place_.clear();
    ++result.segment_mismatches;
    value("segment at " + std::to_string(segment.address), recorded, simulated);
  }

  void compare(const SnapshotBlock& recorded, const SnapshotBlock& simulated) {
    place_ = " of the block at " + std::to_string(recorded.address);
    number("address", recorded.address, simulated.address);
    number("size", recorded.size, simulated.size);
    if (stale_sizes_ || recorded.state != State::inactive) {
      number("requested_size", recorded.requested, simulated.requested);
    }
    value("state", name_of(recorded.state), name_of(simulated.state));
  }

  void number(const char* what, std::uint64_t recorded, std::uint64_t simulated) {
    if (recorded != simulated) value(what, std::to_string(recorded), std::to_string(simulated));
  }

  void value(const std::string& what, const std::string& recorded, const std::string& simulated) {
    if (recorded == simulated) return;
    equal_ = false;
    if (!result.first) result.first = {what + place_, recorded, simulated};
  }

  bool stale_sizes_;
  std::string place_;
  bool equal_ = true;
};

}  // namespace

std::vector<SnapshotSegment> snapshot_segments(const CachingAllocator& allocator, int device,
                                               const std::map<PoolId, SnapshotPool>& pools) {
  std::vector<SnapshotSegment> segments;
  for (const SegmentView& view : allocator.segments()) {
    const auto pool = pools.find(view.pool);
    bool open = false;
    for (const BlockView& block : view.blocks) {
      const bool mapped = block.state != BlockState::unmapped;
      if (mapped && !open) {
        SnapshotSegment run;
        run.device = device;
        run.address = block.address;
        run.stream = view.stream;
        run.large = view.large;
        run.expandable = view.expandable;
        if (pool != pools.end()) run.pool = pool->second;
        segments.push_back(std::move(run));
      }
      if (mapped) add_block(segments.back(), block);
      open = mapped;
    }
  }
  return segments;
}

SegmentComparison compare_segments(const std::vector<SnapshotSegment>& segments, int device,
                                   const CachingAllocator& allocator,
                                   const std::map<PoolId, SnapshotPool>& pools, bool stale_sizes) {
  std::map<Address, const SnapshotSegment*> recorded;
  for (const SnapshotSegment& segment : segments) {
    if (segment.device == device) recorded[segment.address] = &segment;
  }
  Comparison comparison{stale_sizes};
  comparison.result.segments = recorded.size();
  for (const SnapshotSegment& simulated : snapshot_segments(allocator, device, pools)) {
    const auto counterpart = recorded.find(simulated.address);
    if (counterpart == recorded.end()) {
      comparison.only_simulated(simulated);
      continue;
    }
    comparison.compare(*counterpart->second, simulated);
    recorded.erase(counterpart);
  }
  for (const auto& [address, segment] : recorded) comparison.only_recorded(*segment);
  return std::move(comparison.result);
}

}  // namespace vramlab
