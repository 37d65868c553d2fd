#include "sim/memory/caching/validate.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace vramlab {
namespace {

// The current values of the counters, counted anew.
struct Sums {
  std::int64_t allocation = 0, segment = 0, active = 0, inactive_split = 0;
  std::int64_t allocated_bytes = 0, reserved_bytes = 0, active_bytes = 0, inactive_split_bytes = 0;
  std::int64_t requested_bytes = 0, free_bytes = 0;
};

class Validator {
 public:
  explicit Validator(const AllocatorState& state) : state_(state) {}

  std::vector<std::string> run() {
    check_segments();
    check_tables();
    check_lists();
    check_deferred_frees();
    check_counters();
    return std::move(broken_);
  }

 private:
  void expect(bool holds, const std::string& promise) {
    if (!holds) broken_.push_back(promise);
  }
  static std::string at(const Block& block) { return " at " + std::to_string(block.address); }

  void check_segments();
  void check_block(const Segment& segment, SegmentIndex index, const Block& block);
  void count(const Block& block);
  void check_tables();
  void check_lists();
  void check_deferred_frees();
  void check_counters();
  void check_class(StatClass c, const Sums& sums, const char* name);

  const AllocatorState& state_;
  std::vector<std::string> broken_;
  std::set<BlockIndex> reached_;
  Sums small_;
  Sums large_;
};

void Validator::check_segments() {
  std::vector<std::pair<Address, Address>> spans;
  for (SegmentIndex index = 0; index < state_.segments.size(); ++index) {
    const Segment& segment = state_.segments[index];
    if (!segment.live) continue;
    spans.emplace_back(segment.base, segment.base + segment.size);
    Sums& sums = is_large_pool(segment.pool) ? large_ : small_;
    if (!segment.is_expandable()) ++sums.segment;

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

void Validator::check_block(const Segment& segment, SegmentIndex index, const Block& block) {
  expect(block.live, "a block of a segment is a live one" + at(block));
  expect(block.segment == index && block.pool == segment.pool && block.stream == segment.stream,
         "a block belongs to its segment's pool and stream" + at(block));
  expect(block.expandable == segment.is_expandable(), "a block is of its segment's kind" + at(block));
  expect(block.size > 0 && block.size % 512 == 0, "sizes are multiples of 512" + at(block));
  if (block.allocated) {
    expect(block.mapped && block.pending_events == 0,
           "an allocated block is mapped and not pending" + at(block));
  }
  if (!block.is_idle()) expect(block.requested <= block.size, "a block is as large as asked for" + at(block));
  if (!block.mapped) {
    expect(segment.is_expandable() && (block.address - segment.base) % segment.page == 0 &&
               block.size % segment.page == 0,
           "whole pages of expandable segments are unmapped" + at(block));
  }
}

void Validator::count(const Block& block) {
  if (!block.mapped) return;
  Sums& sums = is_large_pool(block.pool) ? large_ : small_;
  const auto size = static_cast<std::int64_t>(block.size);
  sums.reserved_bytes += size;
  if (block.allocated) {
    ++sums.allocation;
    sums.allocated_bytes += size;
  }
  if (block.is_idle()) {
    sums.free_bytes += size;
    if (!block.expandable && block.is_split()) {
      ++sums.inactive_split;
      sums.inactive_split_bytes += size;
    }
  } else {
    ++sums.active;
    sums.active_bytes += size;
    sums.requested_bytes += static_cast<std::int64_t>(block.requested);
  }
}

void Validator::check_tables() {
  const auto live_blocks = static_cast<std::size_t>(
      std::count_if(state_.blocks.begin(), state_.blocks.end(), [](const Block& b) { return b.live; }));
  expect(live_blocks == reached_.size(), "every live block lies in a segment");
  expect(live_blocks + state_.blocks.spare() == state_.blocks.size(), "spare block entries are listed");
  const auto live_segments = static_cast<std::size_t>(
      std::count_if(state_.segments.begin(), state_.segments.end(), [](const Segment& s) { return s.live; }));
  expect(live_segments + state_.spare_segments.size() == state_.segments.size(),
         "spare segment entries are listed");
  expect(state_.pools.size() == 2 * state_.groups.size(), "every group has two pools");
}

void Validator::check_lists() {
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
    expect(pool.unmapped == unmapped,
           "the list of unmapped blocks of pool " + std::to_string(p) + " is right");
  }
}

void Validator::check_deferred_frees() {
  std::map<BlockIndex, int> events;
  for (const PendingEvent& event : state_.events) ++events[event.block];
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

void Validator::check_class(StatClass c, const Sums& sums, const char* name) {
  const MemoryStats& stats = state_.stats;
  const auto compare = [&](const StatArray& stat, std::int64_t sum, const char* counter) {
    expect(stat[c].current == sum, std::string(counter) + '.' + name + " is " +
                                       std::to_string(stat[c].current) + ", the blocks say " +
                                       std::to_string(sum));
    expect(stat[c].peak >= stat[c].current,
           std::string(counter) + '.' + name + ": the peak is no less than the value");
  };
  compare(stats.allocation, sums.allocation, "allocation");
  compare(stats.segment, sums.segment, "segment");
  compare(stats.active, sums.active, "active");
  compare(stats.inactive_split, sums.inactive_split, "inactive_split");
  compare(stats.allocated_bytes, sums.allocated_bytes, "allocated_bytes");
  compare(stats.reserved_bytes, sums.reserved_bytes, "reserved_bytes");
  compare(stats.active_bytes, sums.active_bytes, "active_bytes");
  compare(stats.inactive_split_bytes, sums.inactive_split_bytes, "inactive_split_bytes");
  compare(stats.requested_bytes, sums.requested_bytes, "requested_bytes");
  expect(sums.reserved_bytes == sums.active_bytes + sums.free_bytes,
         std::string("reserved = active + cached in ") + name);  // R8.8
}

void Validator::check_counters() {
  check_class(StatClass::small_pool, small_, "small_pool");
  check_class(StatClass::large_pool, large_, "large_pool");
  const Sums all{small_.allocation + large_.allocation,
                 small_.segment + large_.segment,
                 small_.active + large_.active,
                 small_.inactive_split + large_.inactive_split,
                 small_.allocated_bytes + large_.allocated_bytes,
                 small_.reserved_bytes + large_.reserved_bytes,
                 small_.active_bytes + large_.active_bytes,
                 small_.inactive_split_bytes + large_.inactive_split_bytes,
                 small_.requested_bytes + large_.requested_bytes,
                 small_.free_bytes + large_.free_bytes};
  check_class(StatClass::all, all, "all");
}

}  // namespace

std::vector<std::string> validate(const CachingAllocator& allocator) {
  return Validator(allocator.state()).run();
}

}  // namespace vramlab
