// The structures that keep work per operation small when there is much of everything, held against plain ones
// that look at all of it; and the work itself, counted.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/memory/caching/pending_events.hpp"
#include "sim/memory/segments/driver.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

// --- Sizes by key ---

TEST(SizeMap, FindsWhatLookingAtAllOfThemFinds) {
  EXPECT_TRUE(rc::check([] {
    SizeMap<Address> sizes;
    std::map<Address, Bytes> plain;
    const int steps = *rc::gen::inRange(1, 300);
    for (int i = 0; i < steps; ++i) {
      const Address key = *rc::gen::inRange<Address>(0, 64);
      const Bytes size = *rc::gen::inRange<Bytes>(0, 40);
      if (*rc::gen::inRange(0, 3) == 0) {
        RC_ASSERT(sizes.erase(key) == (plain.erase(key) > 0));
      } else {
        sizes.set(key, size);
        plain[key] = size;
      }
      const auto fits = [size](const auto& entry) { return entry.second >= size; };
      const auto first = std::find_if(plain.lower_bound(key), plain.end(), fits);
      const auto last = std::find_if(plain.rbegin(), plain.rend(), fits);
      const auto* found = sizes.first_fitting(size, key);
      RC_ASSERT((first == plain.end() ? found == nullptr : found != nullptr && *found == *first));
      const auto* highest = sizes.last_fitting(size);
      RC_ASSERT((last == plain.rend() ? highest == nullptr : highest != nullptr && *highest == *last));
      RC_ASSERT(std::equal(plain.begin(), plain.end(), sizes.begin(), sizes.end()));
      Bytes largest = 0;
      for (const auto& [at, bytes] : plain) largest = std::max(largest, bytes);
      RC_ASSERT(sizes.largest() == largest);
    }
  }));
}

// --- Places of the driver: R10.7 and R10.9, by looking at every chunk and every hole ---

class PlainAddresses {
 public:
  PlainAddresses() {
    for (const Bytes in_use : {8_MiB, 30_MiB}) {
      open_chunk(32_MiB);
      chunks_.back().holes = {{chunks_.back().address + in_use, 32_MiB - in_use}};
    }
  }

  Address take(Bytes size) {
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
      if (const auto address = take_from(*chunk, size)) return *address;
    }
    open_chunk(size);
    return *take_from(chunks_.back(), size);
  }

  void give(Address address, Bytes size) {
    const auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [address](const Chunk& one) {
      return address >= one.address && address < one.address + one.size;
    });
    chunk->holes[address] = size;
    std::map<Address, Bytes> merged;
    for (const auto& [start, bytes] : chunk->holes) {
      if (!merged.empty() && merged.rbegin()->first + merged.rbegin()->second == start) {
        merged.rbegin()->second += bytes;
      } else {
        merged[start] = bytes;
      }
    }
    chunk->holes = merged;
    if (merged.begin()->second == chunk->size) chunks_.erase(chunk);
  }

 private:
  struct Chunk {
    Address address = 0;
    Bytes size = 0;
    std::map<Address, Bytes> holes;
  };

  static std::optional<Address> take_from(Chunk& chunk, Bytes size) {
    auto best = chunk.holes.end();
    for (auto hole = chunk.holes.begin(); hole != chunk.holes.end(); ++hole) {
      if (hole->second >= size && (best == chunk.holes.end() || hole->second < best->second)) best = hole;
    }
    if (best == chunk.holes.end()) return std::nullopt;
    const auto [address, bytes] = *best;
    chunk.holes.erase(best);
    if (bytes > size) chunk.holes[address + size] = bytes - size;
    return address;
  }

  void open_chunk(Bytes size) {
    const Bytes rounded = round_up(size, 32_MiB);
    std::map<Address, Bytes, std::greater<>> taken;
    for (const Chunk& chunk : chunks_) taken[chunk.address] = chunk.size;
    Address ceiling = 0x7FF0'0000'0000;
    for (const auto& [address, bytes] : taken) {
      if (ceiling - (address + bytes) > rounded) break;
      ceiling = address;
    }
    chunks_.push_back({ceiling - rounded, rounded, {{ceiling - rounded, rounded}}});
  }

  std::vector<Chunk> chunks_;  // oldest first
};

TEST(DriverAddresses, AreThoseOfLookingAtEveryChunk) {
  EXPECT_TRUE(rc::check([] {
    DriverAddresses driver = DriverAddresses::of_training_process();
    PlainAddresses plain;
    std::vector<std::pair<Address, Bytes>> held;
    const int steps = *rc::gen::inRange(1, 200);
    for (int i = 0; i < steps; ++i) {
      if (held.empty() || *rc::gen::inRange(0, 5) > 1) {
        const Bytes size = 2_MiB * (*rc::gen::inRange<Bytes>(1, 12) * *rc::gen::element<Bytes>(1, 1, 4, 8));
        held.emplace_back(driver.take(size), size);
        RC_ASSERT(held.back().first == plain.take(size));
      } else {
        std::swap(held[*rc::gen::inRange<std::size_t>(0, held.size())], held.back());
        driver.give(held.back().first, held.back().second);
        plain.give(held.back().first, held.back().second);
        held.pop_back();
      }
    }
  }));
}

// --- Deferred frees: R3.8, by looking at every event ---

class PlainEvents {
 public:
  void record(BlockIndex block, const std::vector<StreamId>& streams) {
    for (const StreamId stream : streams) events_.push_back({.stream = stream, .block = block});
  }
  void finish(std::optional<BlockIndex> block) {  // empty = all
    for (PendingEvent& event : events_) event.finished |= !block || event.block == *block;
  }
  std::vector<BlockIndex> take_finished() {
    std::vector<BlockIndex> taken;
    std::vector<PendingEvent> left;
    std::vector<StreamId> stopped;
    for (const PendingEvent& event : events_) {
      const bool waits = std::find(stopped.begin(), stopped.end(), event.stream) != stopped.end();
      if (event.finished && !waits) {
        taken.push_back(event.block);
      } else {
        stopped.push_back(event.stream);
        left.push_back(event);
      }
    }
    events_ = left;
    return taken;
  }
  [[nodiscard]] const std::vector<PendingEvent>& in_order() const { return events_; }

 private:
  std::vector<PendingEvent> events_;
};

TEST(PendingEvents, AreTakenAsIfAllWereLookedAt) {
  EXPECT_TRUE(rc::check([] {
    PendingEvents events;
    PlainEvents plain;
    const auto steps = *rc::gen::inRange<BlockIndex>(1, 100);
    for (BlockIndex i = 0; i < steps; ++i) {
      std::vector<StreamId> streams;
      const int mask = *rc::gen::inRange(0, 16);
      for (StreamId stream = 1; stream <= 4; ++stream) {
        if ((mask >> (stream - 1) & 1) != 0) streams.push_back(stream);
      }
      if (!streams.empty()) {
        events.record(i, streams);
        plain.record(i, streams);
      }
      if (*rc::gen::inRange(0, 12) == 0) {
        events.finish_all();
        plain.finish({});
      } else {
        const auto block = *rc::gen::inRange<BlockIndex>(0, i + 1);
        events.finish(block);
        plain.finish(block);
      }
      if (*rc::gen::inRange(0, 2) == 0) RC_ASSERT(events.take_finished() == plain.take_finished());
      const std::vector<PendingEvent> waiting = events.in_order();
      RC_ASSERT(std::equal(waiting.begin(), waiting.end(), plain.in_order().begin(), plain.in_order().end(),
                           [](const PendingEvent& a, const PendingEvent& b) {
                             return a.stream == b.stream && a.block == b.block && a.finished == b.finished;
                           }));
      RC_ASSERT(events.empty() == plain.in_order().empty());
    }
  }));
}

// Without synchronisation no allocation looks at any of the frees that wait.
TEST(PendingEvents, AreNotLookedAtUntilOneIsFinished) {
  constexpr std::size_t kFrees = 10'000;
  Rig rig;
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < kFrees; ++i) {
    blocks.push_back(rig.take(4096, 0));
    rig.allocator.record_stream(blocks.back(), 1);
    rig.give(blocks.back());
  }
  EXPECT_EQ(rig.allocator.state().events.inspected(), 0u);
  for (const BlockId block : blocks) {
    rig.allocator.finish_events(block);
    rig.allocator.process_events();
  }
  EXPECT_EQ(rig.allocator.state().events.inspected(), 2 * kFrees - 1);  // each, and the one behind it
  EXPECT_EQ(rig.active(), 0u);
}

// --- Bins with very many blocks ---

// Equal sizes in no order, and sizes so close that they share a bin: past some dozens of blocks a bin is no
// longer walked through. And more streams than have bins.
TEST(LongBins, ServeWhatAnOrderedListServes) {
  struct Case {
    Bytes step = 0;
    std::size_t streams = 1;
  };
  for (const Case& one_case : {Case{0, 1}, Case{512, 1}, Case{512, 2}, Case{4096, 40}}) {
    SimulatedCard card(64_GiB, 0);
    SimSegments segments(card);
    SimulatedCard other_card(64_GiB, 0);
    SimSegments other_segments(other_card);
    CachingAllocator binned(segments, {.free_list = FreeListKind::binned});
    CachingAllocator ordered(other_segments, {.free_list = FreeListKind::ordered});
    std::vector<std::pair<BlockId, BlockId>> blocks;
    const auto take = [&](std::size_t i) {
      const Bytes size = 900'000 + one_case.step * (i * 7919 % 13);
      const StreamId stream = i * 17 % one_case.streams;
      const auto one = binned.allocate(size, stream);
      const auto other = ordered.allocate(size, stream);
      ASSERT_EQ(one->address, other->address);
      blocks.emplace_back(one->block, other->block);
    };
    for (std::size_t i = 0; i < 1000; ++i) take(i);
    for (std::size_t round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < 1000; i += 2) {
        const auto& [one, other] = blocks[1000 * round + i * 389 % 1000];
        binned.free(one);
        ordered.free(other);
      }
      for (std::size_t i = 0; i < 1000; ++i) take(i + round);
    }
    EXPECT_TRUE(validate(binned).empty());
  }
}

// --- Work, counted ---

// Every second of n blocks is freed and as many come again: each block of a bin is looked at once, when the
// bin is found to be long, and by no later request. 2,000 sizes, or one.
std::uint64_t inspected_by_refill(std::size_t n, std::size_t sizes) {
  Rig rig;
  const auto size = [&](std::size_t i) { return Bytes{512} * (8 + i * 7919 % sizes); };
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < n; ++i) blocks.push_back(rig.take(size(i), 0));
  for (std::size_t i = 0; i < n; i += 2) rig.give(blocks[i * 7919 % n]);  // n is even and no multiple of 7919
  for (std::size_t i = 0; i < n; i += 2) rig.take(size(i), 0);
  std::uint64_t inspected = 0;
  for (const Pool& pool : rig.allocator.state().pools) inspected += pool.free.inspected();
  return inspected;
}

TEST(FreeList, LooksAtBlocksOfLongBinsOnce) {
  for (const std::size_t n : {4'000u, 16'000u, 64'000u}) {
    EXPECT_LE(inspected_by_refill(n, 1), 100u);
    EXPECT_LE(inspected_by_refill(n, 2000), n);
  }
}

// At most 8 streams are walked through in an allocation or a free, and in the search before an insertion.
TEST(FreeList, WalksThroughAFewStreamsOnly) {
  for (const std::size_t n : {100u, 1'000u, 4'000u}) {
    Rig rig;
    std::vector<BlockId> blocks;
    for (std::size_t i = 0; i < n; ++i) blocks.push_back(rig.take(4096, n - i));
    for (const BlockId block : blocks) rig.give(block);
    const std::uint64_t inspected = rig.allocator.state().pools[0].free.inspected();
    EXPECT_LE(inspected, 8 * 4 * n);
    EXPECT_GE(inspected, n);  // it counts
  }
}

}  // namespace
}  // namespace vramlab
