// A second opinion on a caching allocator: every promise re-checked from its blocks alone.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {
namespace {

class Validator {
 public:
  explicit Validator(const AllocatorState& state) : state_(state) {}

  std::vector<std::string> run() {
    check_segments();
    check_tables();
    check_lists();
    check_deferred_frees();
    check_class(StatClass::small_pool, "small_pool");
    check_class(StatClass::large_pool, "large_pool");
    check_class(StatClass::all, "all");
    return std::move(broken_);
  }

 private:
  void expect(bool holds, const std::string& promise) {
    if (!holds) broken_.push_back(promise);
  }
  static std::string at(const Block& block) { return " at " + std::to_string(block.address); }

  void check_segments() {
    std::vector<std::pair<Address, Address>> spans;
    for (SegmentIndex index = 0; index < state_.segments.size(); ++index) {
      const Segment& segment = state_.segments[index];
      if (!segment.live) continue;
      spans.emplace_back(segment.base, segment.base + segment.size);
      if (!segment.is_expandable()) counted_.segment.increase(class_of(segment.pool), 1);

      Address expected = segment.base;
      BlockIndex previous = kNoBlock;
      for (BlockIndex i = segment.head; i != kNoBlock; i = state_.blocks[i].next) {
        const Block& block = state_.blocks[i];
        if (!reached_.insert(i).second) {
          expect(false, "a block is reached twice" + at(block));
          break;
        }
        expect(block.address == expected, "blocks cover their segment without holes" + at(block));
        expect(block.previous == previous, "links between neighbours agree" + at(block));
        if (previous != kNoBlock) {
          const Block& before = state_.blocks[previous];
          expect(!(before.is_idle() && block.is_idle() && before.mapped == block.mapped),
                 "neighbours that could be merged are merged" + at(block));
        }
        check_block(segment, index, block);
        count(block);
        expected += block.size;
        previous = i;
      }
      expect(expected == segment.base + segment.size,
             "blocks fill their segment at " + std::to_string(segment.base));
    }
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
      expect(spans[i - 1].second <= spans[i].first,
             "segments do not overlap at " + std::to_string(spans[i].first));
    }
  }

  void check_block(const Segment& segment, SegmentIndex index, const Block& block) {
    expect(block.live, "a block of a segment is a live one" + at(block));
    expect(block.segment == index && block.pool == segment.pool && block.stream == segment.stream,
           "a block belongs to its segment's pool and stream" + at(block));
    expect(block.expandable == segment.is_expandable(), "a block is of its segment's kind" + at(block));
    expect(block.size > 0 && block.size % 512 == 0, "sizes are multiples of 512" + at(block));
    if (block.allocated) {
      expect(block.mapped && block.pending_events == 0,
             "an allocated block is mapped and not pending" + at(block));
    }
    if (!block.is_idle())
      expect(block.requested <= block.size, "a block is as large as asked for" + at(block));
    if (!block.mapped) {
      expect(segment.is_expandable() && (block.address - segment.base) % segment.page == 0 &&
                 block.size % segment.page == 0,
             "whole pages of expandable segments are unmapped" + at(block));
    }
  }

  void count(const Block& block) {
    if (!block.mapped) return;
    const StatClass c = class_of(block.pool);
    const auto size = static_cast<std::int64_t>(block.size);
    counted_.reserved_bytes.increase(c, size);
    if (block.allocated) {
      counted_.allocation.increase(c, 1);
      counted_.allocated_bytes.increase(c, size);
    }
    if (block.is_idle()) {
      cached_bytes_.increase(c, size);
      if (!block.expandable && block.is_split()) {
        counted_.inactive_split.increase(c, 1);
        counted_.inactive_split_bytes.increase(c, size);
      }
    } else {
      counted_.active.increase(c, 1);
      counted_.active_bytes.increase(c, size);
      counted_.requested_bytes.increase(c, static_cast<std::int64_t>(block.requested));
    }
  }

  void check_tables() {
    const auto live_blocks = static_cast<std::size_t>(
        std::count_if(state_.blocks.begin(), state_.blocks.end(), [](const Block& b) { return b.live; }));
    expect(live_blocks == reached_.size(), "every live block lies in a segment");
    expect(live_blocks + state_.blocks.spare() == state_.blocks.size(), "spare block entries are listed");
    const auto live_segments = static_cast<std::size_t>(std::count_if(
        state_.segments.begin(), state_.segments.end(), [](const Segment& s) { return s.live; }));
    expect(live_segments + state_.spare_segments.size() == state_.segments.size(),
           "spare segment entries are listed");
    expect(state_.pools.size() == 2 * state_.groups.size(), "every group has two pools");
  }

  void check_lists() {
    for (PoolIndex p = 0; p < state_.pools.size(); ++p) {
      const Pool& pool = state_.pools[p];
      std::vector<FreeBlock> cached;
      std::vector<UnmappedBlock> unmapped;
      for (const BlockIndex i : reached_) {
        const Block& block = state_.blocks[i];
        if (block.pool != p || !block.is_idle()) continue;
        if (block.mapped) {
          cached.push_back({block.stream, block.size, block.address, i});
          expect((i < state_.gc_base.size() ? state_.gc_base[i] : 0) <= pool.calls,
                 "no cached block is younger than its pool" + at(block));
        } else {
          unmapped.push_back({block.stream, block.address, i});
        }
      }
      std::sort(cached.begin(), cached.end());
      std::sort(unmapped.begin(), unmapped.end());
      const std::vector<BlockIndex> listed = pool.free.in_order(state_.blocks);
      expect(std::equal(cached.begin(), cached.end(), listed.begin(), listed.end(),
                        [](const FreeBlock& block, BlockIndex index) { return block.block == index; }),
             "the free list of pool " + std::to_string(p) + " holds the cached blocks in order");
      expect(std::equal(unmapped.begin(), unmapped.end(), pool.unmapped.begin(), pool.unmapped.end(),
                        [](const UnmappedBlock& block, const auto& entry) { return block == entry.first; }),
             "the list of unmapped blocks of pool " + std::to_string(p) + " is right");
      for (const auto& [entry, at_most] : pool.unmapped) {
        expect(idle_run(entry.block) <= at_most,
               "what is idle around an unmapped block is no more than is noted" +
                   at(state_.blocks[entry.block]));
      }
    }
  }

  // R5.3.1: from the lower neighbour on, as far as all is idle.
  [[nodiscard]] Bytes idle_run(BlockIndex unmapped) const {
    const BlockIndex previous = state_.blocks[unmapped].previous;
    const bool below = previous != kNoBlock && state_.blocks[previous].is_idle();
    Bytes run = 0;
    for (BlockIndex i = below ? previous : unmapped; i != kNoBlock && state_.blocks[i].is_idle();
         i = state_.blocks[i].next)
      run += state_.blocks[i].size;
    return run;
  }

  void check_deferred_frees() {
    std::map<BlockIndex, int> events;
    for (const PendingEvent& event : state_.events.in_order()) ++events[event.block];
    for (const BlockIndex i : reached_) {
      const Block& block = state_.blocks[i];
      const auto waiting = events.find(i);
      expect(block.pending_events == (waiting == events.end() ? 0 : waiting->second),
             "a pending block counts its events" + at(block));
      expect(block.has_stream_uses == (state_.stream_uses.count(i) > 0),
             "stream uses are on record" + at(block));
      const bool parked = std::count(state_.parked.begin(), state_.parked.end(), i) > 0;
      expect(parked == (!block.allocated && block.has_stream_uses), "parked blocks are listed" + at(block));
    }
  }

  void check_class(StatClass c, const std::string& name) {
    for (const auto& [counter, member] : kStatArrays) {
      const Stat stat = (state_.stats.*member)[c];
      const std::int64_t sum = (counted_.*member)[c].current;
      expect(stat.current == sum, counter + ('.' + name) + " is " + std::to_string(stat.current) +
                                      ", the blocks say " + std::to_string(sum));
      expect(stat.peak >= stat.current, counter + ('.' + name) + ": the peak is no less than the value");
    }
    expect(counted_.reserved_bytes[c].current == counted_.active_bytes[c].current + cached_bytes_[c].current,
           "reserved = active + cached in " + name);  // R8.8
  }

  const AllocatorState& state_;
  std::vector<std::string> broken_;
  std::set<BlockIndex> reached_;
  MemoryStats counted_;  // the current values, counted anew
  StatArray cached_bytes_;
};

}  // namespace

std::vector<std::string> validate(const CachingAllocator& allocator) {
  return Validator(allocator.state()).run();
}

}  // namespace vramlab
