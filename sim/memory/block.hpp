// Blocks and segments: what a caching allocator's memory is made of (section 0 of the rules).
#pragma once

#include <cstdint>

#include "sim/core/units.hpp"
#include "sim/memory/allocator.hpp"

namespace vramlab {

/// Position of a block in the allocator's table of blocks; also the value of its BlockId.
using BlockIndex = std::uint32_t;
inline constexpr BlockIndex kNoBlock = 0xFFFF'FFFF;

using SegmentIndex = std::uint32_t;

/// A bin of the fast free list.
using BinIndex = std::uint16_t;

/// Position of a pool in the allocator's table of pools: 2·group for small blocks, 2·group + 1 for large
/// ones. Group 0 holds the default pools, every other group one private pool.
using PoolIndex = std::uint16_t;

constexpr bool is_large_pool(PoolIndex pool) { return pool % 2 == 1; }
constexpr std::size_t group_of(PoolIndex pool) { return pool / 2; }

/// A contiguous piece of one segment: one cache line.
struct alignas(64) Block {
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;             ///< what the program asked for; stale while the block is free (R8.9)
  StreamId stream = 0;             ///< allocation stream, never changes
  BlockIndex previous = kNoBlock;  ///< neighbours in the segment, by address
  BlockIndex next = kNoBlock;
  BlockIndex smaller = kNoBlock;  ///< neighbours in its bin of the free list
  BlockIndex larger = kNoBlock;
  SegmentIndex segment = 0;
  PoolIndex pool = 0;
  std::uint16_t pending_events = 0;  ///< events of other streams that a deferred free waits for (R3.4)
  BinIndex bin = 0;                  ///< its bin of the free list, while it is in one
  bool live = false;                 ///< this table entry is a block
  bool allocated = false;            ///< held by the program
  bool cached = false;               ///< in a free list
  bool mapped = true;                ///< has memory behind it; false only in expandable segments
  bool expandable = false;           ///< belongs to an expandable segment
  bool has_stream_uses = false;      ///< other streams are recorded for it (R3.7)

  /// R0: a block with a neighbour, unmapped ones included.
  [[nodiscard]] bool is_split() const { return previous != kNoBlock || next != kNoBlock; }

  /// Freed by the program, but still waiting for other streams.
  [[nodiscard]] bool is_pending() const { return !allocated && (pending_events > 0 || has_stream_uses); }

  /// Neither held nor waiting: a cached block, or an unmapped one.
  [[nodiscard]] bool is_idle() const { return !allocated && pending_events == 0 && !has_stream_uses; }
};

static_assert(sizeof(Block) == 64);

/// One cudaMalloc result, or one reserved range that memory is mapped into.
struct Segment {
  Address base = 0;
  Bytes size = 0;  ///< of the allocation, or of the whole reserved range
  Bytes page = 0;  ///< unit of mapping; 0 for a plain segment
  StreamId stream = 0;
  BlockIndex head = kNoBlock;  ///< the block at `base`; the same one for the segment's whole life
  PoolIndex pool = 0;
  bool live = false;  ///< this table entry is a segment

  [[nodiscard]] bool is_expandable() const { return page != 0; }
};

}  // namespace vramlab
