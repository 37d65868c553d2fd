// PyTorch's native CUDA caching allocator, rule by rule. Rule ids such as R2.3 are those of the behavioural
// specification of that allocator; every source names the rules it holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/caching/allocator_state.hpp"
#include "sim/memory/others/backend_choice.hpp"
#include "sim/memory/segments/segment_source.hpp"

namespace vramlab {

/// What a caching allocator starts with.
struct AllocatorOptions {
  AllocatorSettings settings;
  /// Most bytes it may reserve (R9.1). If empty, the memory fraction of the settings decides.
  std::optional<Bytes> limit;
  /// Which free list to use; both behave the same, `ordered` is the slow reference.
  FreeListKind free_list = FreeListKind::binned;
  /// What serves the program in its place, for whoever makes its process (make_backend); the caching
  /// allocator does not look at it.
  BackendChoice backend{};
};

/// An error, other than an out-of-memory error, that PyTorch itself would raise here (R4.7, R7.9).
/// The allocator must not be used any more.
class AllocatorFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a block is doing, as a snapshot says it (R11.2).
enum class BlockState : std::uint8_t { allocated, pending_free, inactive, unmapped };

/// A read-only copy of one block.
struct BlockView {
  BlockId id{};
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;
  BlockState state{};
};

/// A read-only copy of one segment with all its blocks in address order.
struct SegmentView {
  Address base = 0;
  Bytes size = 0;  ///< of the allocation, or of the reserved range
  StreamId stream = 0;
  bool large = false;
  bool expandable = false;
  PoolId pool{};
  std::vector<BlockView> blocks;
};

/// The caching allocator of one device over a source of segments.
///
/// An allocation that does not fit is an outcome (AllocationResult::oom); exceptions are for misuse
/// (InternalError) and for errors that are PyTorch's own (AllocatorFault).
class CachingAllocator : public Allocator {
 public:
  using State = AllocatorState;

  explicit CachingAllocator(SegmentSource& source, AllocatorOptions options = {});
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  AllocationResult allocate(Bytes size, StreamId stream) override;
  void free(BlockId block) override;
  void empty_cache() override;
  void reset_peak_stats() override { state_.stats.reset_peaks(); }
  [[nodiscard]] const MemoryStats& stats() const override { return state_.stats; }

  /// torch.cuda.reset_accumulated_memory_stats(): sums and event counts become 0 (R8.5).
  void reset_accumulated_stats() { state_.stats.reset_sums(); }

  // --- Other streams (R3.7 to R3.9) ---

  /// tensor.record_stream(): `stream` uses the block too, so its free will wait for that stream.
  void record_stream(BlockId block, StreamId stream);

  /// The device has done all its work: every event recorded so far is finished. The frees that waited
  /// complete at the next allocation outside captures, or in a full release.
  void finish_events() { state_.events.finish_all(); }

  /// The same of one stream: a free that waits for others, too, waits on.
  void finish_stream(StreamId stream) { state_.events.finish_stream(stream); }

  /// The events that the free of this block waits for are finished. The block must be pending.
  void finish_events(BlockId block);

  /// Completes the deferred frees whose events are finished, as every allocation does first (R3.8).
  /// Nothing happens while a capture or use_mem_pool is open.
  void process_events();

  // --- Private pools (R7) ---

  /// torch.cuda.MemPool(): a pool with one use, its own object.
  PoolId new_mem_pool(const PoolOptions& options = {});
  /// The MemPool object dies: one use less, and its unused segments go at once.
  void delete_mem_pool(PoolId pool);
  /// torch.cuda.use_mem_pool(): from here on, requests of all streams go to `pool`.
  void enter_mem_pool(PoolId pool);
  void leave_mem_pool(PoolId pool);

  /// A graph capture on `stream` begins: its requests go to a new pool, or to `shared`, which an earlier
  /// capture returned. The graph is one use of the pool.
  PoolId begin_capture(StreamId stream, std::optional<PoolId> shared = {});
  void end_capture(PoolId pool) { close_context(pool, true); }
  /// The graph is reset: one use less, and its pool may become freeable; nothing is released before the next
  /// full release (R7.2).
  void release_graph(PoolId pool) { --state_.groups[find_group(pool)].uses; }

  /// torch.cuda.empty_cache() for one private pool; does nothing while the pool is in use (R7.4).
  void empty_cache(PoolId pool);

  // --- Settings and limits (R9) ---

  [[nodiscard]] const AllocatorSettings& settings() const { return state_.settings; }
  /// Replaces the settings; they hold from the next call on (R1.8). Throws InputError for another backend.
  void set_settings(const AllocatorSettings& settings);
  /// Parses `conf` over the current settings, as torch.cuda.memory._set_allocator_settings does (R9.4).
  void set_settings(std::string_view conf) { set_settings(parse_allocator_settings(conf, state_.settings)); }

  /// Most bytes that may be reserved; empty = no limit (R9.1).
  [[nodiscard]] std::optional<Bytes> limit() const { return state_.limit; }
  void set_limit(std::optional<Bytes> limit) { state_.limit = limit; }

  // --- Looking inside ---

  [[nodiscard]] Address address_of(BlockId block) const {
    return block == kNullBlock ? 0 : block_at(block).address;
  }
  /// Bytes in the block, which is at least what was asked for.
  [[nodiscard]] Bytes size_of(BlockId block) const { return block == kNullBlock ? 0 : block_at(block).size; }

  /// All segments in address order.
  [[nodiscard]] std::vector<SegmentView> segments() const;

  /// Bytes in cached blocks of private pools that are not dropped: F of the OOM message (R4.12).
  [[nodiscard]] Bytes private_pools_idle() const;

  /// Whether a private pool was dropped while memory of it is still in use or cached (R7.9). In PyTorch its
  /// record is freed then, and what follows is not defined.
  [[nodiscard]] bool has_orphaned_pool() const { return state_.orphaned_groups > 0; }

  /// Where the history goes; nullptr = nowhere. The listener must outlive the allocator or be taken off.
  void set_listener(AllocatorListener* listener) { listener_ = listener; }

  // --- Starting in the middle ---

  /// Makes an allocator that holds nothing hold `segments`, as segments() gives them; their private pools
  /// must exist, and the source must know of the memory. Blocks get ids of their own. A pending block starts
  /// as an allocated one: record_stream() and free() make it wait. Counters have their current values; peaks
  /// equal them, and totals and ages are 0, because the memory does not tell them (R11.12).
  void start_from(std::span<const SegmentView> segments);

  // --- Copies of the state ---

  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] State save() const { return state_; }
  /// Puts a saved state back, block ids included. The segment source must be put back by its own means.
  void restore(const State& state) { state_ = state; }

  /// Appends a description of everything that can influence later behaviour: allocators with equal
  /// descriptions over equal sources behave equally. Totals and peaks of counters are not part of it, block
  /// ids neither, and GC ages only while garbage collection is on.
  void append_canonical_state(std::vector<std::uint64_t>& out) const;

 private:
  /// One request on its way through the malloc path.
  struct Request {
    Bytes size = 0;     ///< n, as the program asked
    Bytes rounded = 0;  ///< S
    Bytes segment = 0;  ///< A; only known once the search has missed
    StreamId stream = 0;
    PoolIndex pool = 0;
    bool expandable = false;  ///< X
    StatClass stat_class{};
    OomAttempts tried;
    std::optional<Bytes> rejected_above;   ///< set by throw_on_cudamalloc_oom: no further tries
    std::optional<Bytes> segment_reserve;  ///< set where a whole expandable segment is too small
  };

  // malloc_path.cpp
  Request make_request(Bytes size, StreamId stream) const;
  BlockIndex make_block(Request& request);
  [[nodiscard]] bool exceeds_limit(const Request& request) const;
  [[nodiscard]] std::optional<Bytes> exceeded_fraction(const Request& request) const;
  BlockIndex try_allocate(Request& request, bool retry);
  BlockIndex allocate_segment(const Request& request);
  [[nodiscard]] bool should_split(const Block& block, const Request& request) const;
  Allocation hand_out(BlockIndex block, const Request& request);
  OutOfMemory report_oom(const Request& request);
  [[nodiscard]] IdleMemory idle_memory(const Request& request) const;
  [[nodiscard]] BlockIndex walk_to_least_extent(BlockIndex candidate);
  [[nodiscard]] BlockIndex first_plain_after(BlockIndex candidate);
  BlockIndex search_pools_for_oom(Request& request);

  // every_operation.hpp
  struct Merged {
    BlockIndex block = kNoBlock;
    int absorbed = 0;
    Bytes absorbed_bytes = 0;
  };
  BlockIndex search(PoolIndex pool, Bytes size, StreamId stream, bool expandable);
  Merged merge_with_neighbours(BlockIndex block, bool mapped);

  // caching_allocator.cpp
  BlockIndex add_segment(Segment segment, bool mapped);
  void retire_segment(SegmentIndex segment);
  [[noreturn]] static void refuse_block(BlockIndex block);
  void add_initial_segment(const SegmentView& view, PoolIndex pool);
  void add_initial_block(BlockIndex index, const BlockView& view);

  // free_path.cpp
  void defer_free(BlockIndex block);
  [[noreturn]] void refuse_free(BlockId block) const;
  void complete_free(BlockIndex block);
  void record_events(BlockIndex block, const std::vector<StreamUse>& uses);
  void release_parked();
  void release_parked_on(StreamId stream);
  void synchronize_and_complete();

  // expandable.cpp
  BlockIndex allocate_expandable(Request& request);
  [[nodiscard]] BlockIndex find_growable(const Request& request);
  [[nodiscard]] Bytes segment_range(const Request& request) const;
  BlockIndex new_expandable_segment(const Request& request);
  BlockIndex map_block(BlockIndex block, Bytes size);
  void unmap_block(BlockIndex block);
  [[nodiscard]] bool is_idle(BlockIndex block) const {
    return block != kNoBlock && state_.blocks[block].is_idle();
  }
  [[nodiscard]] Bytes idle_run(BlockIndex unmapped, Bytes enough) const;
  void forget_idle_runs(BlockIndex cached);
  void add_unmapped(BlockIndex block);
  void remove_unmapped(BlockIndex block);

  // release.cpp
  void start_age(BlockIndex block);
  [[nodiscard]] std::uint64_t age(BlockIndex block) const;
  void collect_garbage();
  bool release_oversize(const Request& request);
  void release_everything();
  void release_pool(PoolIndex pool);
  void release_group(std::size_t group);
  void release_freeable_groups();
  void release_plain(BlockIndex block);
  void count_device_release(PoolIndex pool);

  // --- What every allocation and every free does ---

  /// Throws InternalError for an id that names no block.
  [[nodiscard]] const Block& block_at(BlockId id) const {
    const auto index = static_cast<BlockIndex>(id);
    if (!state_.blocks.holds(index)) refuse_block(index);
    return state_.blocks[index];
  }
  [[nodiscard]] Block& block_at(BlockId id) { return const_cast<Block&>(std::as_const(*this).block_at(id)); }

  void count_allocation(StatClass c, Bytes size, Bytes requested) {
    MemoryStats& stats = state_.stats;
    stats.allocation.increase(c, 1);
    stats.allocated_bytes.increase(c, static_cast<std::int64_t>(size));
    stats.active.increase(c, 1);
    stats.active_bytes.increase(c, static_cast<std::int64_t>(size));
    stats.requested_bytes.increase(c, static_cast<std::int64_t>(requested));
    if (is_oversize(size)) [[unlikely]]
      stats.oversize_allocations.increase(1);
  }

  /// Ages are kept only from the first counted search on (R0.4): until then all are 0.
  void add_free(BlockIndex index) {
    if (state_.has_ages) [[unlikely]]
      start_age(index);
    state_.pools[state_.blocks[index].pool].free.insert(state_.blocks, index);
  }
  void remove_free(BlockIndex index) {
    state_.pools[state_.blocks[index].pool].free.erase(state_.blocks, index);
  }

  // private_pools.cpp
  std::size_t add_group(const PoolOptions& options, int uses);
  void drop_group(std::size_t group);
  [[nodiscard]] std::size_t find_group(PoolId pool) const;
  [[nodiscard]] std::size_t group_for(StreamId stream) const;
  void close_context(PoolId pool, bool capture);
  [[nodiscard]] bool capture_open() const;
  [[nodiscard]] bool context_open() const { return !state_.contexts.empty(); }

  [[nodiscard]] bool has_deferred_frees() const {
    return state_.events.any_finished() || !state_.parked.empty();
  }

  [[nodiscard]] Bytes total_reserved() const {
    return static_cast<Bytes>(state_.stats.reserved_bytes.all().current);
  }
  [[nodiscard]] bool gc_active() const {
    return state_.limit && state_.settings.garbage_collection_threshold > 0;
  }
  [[nodiscard]] bool is_oversize(Bytes size) const { return size >= state_.settings.max_split_size; }
  /// R2.5: a refusal is final; larger blocks are not tried. `block` ≥ `size`, so the difference cannot wrap.
  [[nodiscard]] bool is_refused_as_oversize(Bytes block, Bytes size) const {
    if (!is_oversize(size)) return is_oversize(block);
    return block - size >= state_.settings.max_non_split_rounding;
  }
  void tell(AllocatorEvent::Action action, Address address, Bytes size, StreamId stream) const {
    if (listener_ != nullptr) [[unlikely]]
      listener_->on_event({action, address, size, stream});
  }

  SegmentSource& source_;
  FreeListKind free_list_;
  AllocatorListener* listener_ = nullptr;
  State state_;
};

/// The invariants that do not hold, one line each; empty for a sound allocator. A second opinion: every
/// promise is checked again from the blocks alone.
///
/// Blocks cover their segments without holes, no two neighbours could be merged, free lists hold exactly the
/// cached blocks in their order, and every counter is the sum over the blocks it counts (R8.8).
std::vector<std::string> validate(const CachingAllocator& allocator);

}  // namespace vramlab
