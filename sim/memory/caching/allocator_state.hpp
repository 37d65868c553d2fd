// Everything a caching allocator remembers, as one value that can be copied.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/size_map.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/caching/blocks.hpp"
#include "sim/memory/caching/free_list.hpp"
#include "sim/memory/caching/pending_events.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {

/// A private pool by its number; numbers are never used again. 0 names the default pools.
enum class PoolId : std::uint32_t {};
inline constexpr PoolId kDefaultPool{0};

/// What kind of private pool: a captured graph's, or the options of torch.cuda.MemPool.
struct PoolOptions {
  bool use_on_oom = false;        ///< default-pool requests may take its cached blocks before an OOM (R7.5)
  bool no_split = false;          ///< blocks are handed out whole (R3.1)
  bool custom_allocator = false;  ///< never uses expandable segments (R5.1)

  friend bool operator==(const PoolOptions&, const PoolOptions&) = default;
};

/// An unmapped block in the order of R0.2: by stream and address.
struct UnmappedBlock {
  StreamId stream = 0;
  Address address = 0;
  BlockIndex block = kNoBlock;

  friend auto operator<=>(const UnmappedBlock&, const UnmappedBlock&) = default;
};

/// How `block`, an unmapped one at `index` of its table, stands in a list of them.
inline UnmappedBlock unmapped_entry(const Block& block, BlockIndex index) {
  return {block.stream, block.address, index};
}

/// The cached blocks of one kind, small or large.
struct Pool {
  FreeList free;
  /// With a size that the idle blocks from its lower neighbour on do not exceed (R5.3.1); kUnlimited where
  /// they have changed since they were last summed up.
  SizeMap<UnmappedBlock> unmapped;
  std::uint64_t calls = 0;  ///< searches, the clock of GC ages (R2.1)
};

/// The default pools, or one private pool: what its small and its large pool have in common.
struct PoolGroup {
  PoolId id = kDefaultPool;
  PoolOptions options;
  int uses = 0;                         ///< live graphs and MemPool objects; 0 = freeable (R7.2)
  std::int64_t device_allocations = 0;  ///< of a private pool (R7.9)
  bool dropped = false;                 ///< the record is gone; blocks left in it are orphans (R7.9)
  std::size_t segments = 0;             ///< that it holds
};

/// A request's way into a private pool while it is open (R7.1).
struct PoolContext {
  std::size_t group = 0;
  std::optional<StreamId>
      captured;  ///< the capturing stream; empty for use_mem_pool, which takes all streams
};

/// A stream that a block was recorded for.
struct StreamUse {
  StreamId stream = 0;
  bool in_capture = false;
};

/// The whole state of a CachingAllocator. Copies are independent; block ids mean the same in all of them.
struct AllocatorState {
  AllocatorSettings settings;
  std::optional<Bytes> limit;
  MemoryStats stats;

  BlockTable blocks;
  bool has_ages = false;  ///< a search was counted (R0.4)
  /// By block: its pool's search counter when it became free (R0.4).
  std::vector<std::uint64_t> gc_base;
  std::vector<Segment> segments;
  std::vector<SegmentIndex> spare_segments;

  std::vector<Pool> pools;                       ///< two for each group
  std::vector<PoolGroup> groups;                 ///< [0] is the default one
  std::map<PoolId, std::size_t> private_groups;  ///< places of those that are not dropped, the oldest first
  std::set<std::size_t> spare_groups;            ///< dropped ones without segments
  std::size_t orphaned_groups = 0;               ///< dropped ones with segments
  std::uint32_t last_pool_id = 0;
  std::vector<PoolContext> contexts;  ///< open ones, oldest first

  std::map<BlockIndex, std::vector<StreamUse>> stream_uses;
  PendingEvents events;
  std::vector<BlockIndex> parked;  ///< freed while a context was open (R3.9)
};

}  // namespace vramlab
