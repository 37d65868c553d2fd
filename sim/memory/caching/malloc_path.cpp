// R4.1 to R4.10: the steps of an allocation, in their order; and R2.3 to R2.5, the exceptions of its search.
#include <algorithm>
#include <utility>

#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/caching/every_operation.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {

// R1.8: the settings of this moment decide, for this request only.
inline CachingAllocator::Request CachingAllocator::make_request(Bytes size, StreamId stream) const {
  Request request;
  request.size = size;
  request.rounded = rounded_size(size, state_.settings);
  request.stream = stream;
  const std::size_t group = context_open() ? group_for(stream) : 0;
  request.pool = static_cast<PoolIndex>(2 * group + (is_small(request.rounded) ? 0 : 1));
  request.expandable =
      state_.settings.expandable_segments && !state_.groups[group].options.custom_allocator;  // R5.1
  request.stat_class = class_of(request.pool);
  return request;
}

// R3.1: the remainder is cut off only if something of that pool could live in it.
inline bool CachingAllocator::should_split(const Block& block, const Request& request) const {
  if (state_.groups[group_of(request.pool)].options.no_split) return false;
  const Bytes remainder = block.size - request.rounded;
  if (!is_large_pool(request.pool) || request.expandable) return remainder >= kMinBlock;
  return !is_oversize(request.rounded) && remainder > kSmallLimit;  // strict: 1 MiB stays with the block
}

// R3.1 to R3.3. The block is in no list any more. Left to itself, g++ calls this and the search: 5 % of a
// request.
[[gnu::always_inline]] inline Allocation CachingAllocator::hand_out(BlockIndex index,
                                                                    const Request& request) {
  MemoryStats& stats = state_.stats;
  const StatClass c = request.stat_class;
  const Block& found = state_.blocks[index];
  const bool was_split = found.is_split();
  const auto whole = static_cast<std::int64_t>(found.size);
  const auto rounded = static_cast<std::int64_t>(request.rounded);
  const bool split = should_split(found, request);
  if (split) add_free(state_.blocks.cut(index, request.rounded));

  Block& block = state_.blocks[index];
  if (!block.expandable) [[likely]] {  // R5.6: expandable blocks never count as inactive splits
    // One net change of what lies unused in pieces: the remainder if there is one, less the whole if it lay
    // so.
    stats.inactive_split.change(c, (split ? 1 : 0) - (was_split ? 1 : 0));
    stats.inactive_split_bytes.change(c, (split ? whole - rounded : 0) - (was_split ? whole : 0));
  }

  block.allocated = true;
  block.requested = request.size;
  tell(AllocatorEvent::Action::alloc, block.address, request.size, request.stream);

  count_allocation(c, block.size, request.size);
  return {BlockId{index}, block.address};
}

AllocationResult CachingAllocator::allocate(Bytes size, StreamId stream) {
  if (size == 0) return Allocation{kNullBlock, 0};  // R1.1
  if (size >= kAbsurdSize) {                        // R1.1: no counter moves
    OutOfMemory absurd;
    absurd.requested = size;
    return absurd;
  }
  if (has_deferred_frees()) {
    process_events();  // R4.1
    if (context_open() && state_.settings.graph_capture_record_stream_reuse) release_parked_on(stream);
  }
  Request request = make_request(size, stream);
  BlockIndex block = search(request.pool, request.rounded, request.stream, request.expandable);  // R4.2
  if (block == kNoBlock) [[unlikely]] {
    Request missed = request;  // a copy, so that the request of a hit can live in registers
    block = make_block(missed);
    if (block == kNoBlock) return report_oom(missed);
    request = missed;
  }
  return hand_out(block, request);
}

// R4.3 to R4.9, after the search has missed. There is no second one after a release: a block that became free
// in it may fit and still not be used.
BlockIndex CachingAllocator::make_block(Request& request) {
  request.segment = segment_size(request.rounded, state_.settings);
  Bytes before = total_reserved();
  const auto given_back = [&] {  // since the last call; a failed try may have mapped a little more (R5.5)
    const Bytes earlier = std::exchange(before, total_reserved());
    return earlier > before ? earlier - before : 0;
  };
  if (gc_active()) collect_garbage();  // R4.3
  request.tried.collected = given_back();
  BlockIndex block = try_allocate(request, false);  // R4.4
  if (block != kNoBlock || request.rejected_above) return block;
  block = search_pools_for_oom(request);  // R4.5
  if (block != kNoBlock) return block;
  const bool enough = release_oversize(request);  // R4.6
  request.tried.oversize_released = given_back();
  if (enough) {
    block = try_allocate(request, false);
    if (block != kNoBlock || request.rejected_above) return block;
  }
  if (context_open()) return kNoBlock;
  release_everything();  // R4.8
  request.tried.cache_released = given_back();
  return try_allocate(request, true);
}

// The segment size counts even where fewer pages would have to be mapped (R4.9.2, R5.7).
bool CachingAllocator::exceeds_limit(const Request& request) const {
  return state_.limit && total_reserved() + request.segment > *state_.limit;
}

// Section 15: the second check, of the memory fraction as it is configured now. Where it is the limit in
// force, too, the first check comes before it and is followed by the usual retries.
std::optional<Bytes> CachingAllocator::exceeded_fraction(const Request& request) const {
  const double fraction = state_.settings.per_process_memory_fraction;
  if (!state_.settings.throw_on_cudamalloc_oom || !(fraction < 1)) return {};
  const auto most = static_cast<Bytes>(fraction * static_cast<double>(source_.device_total()));
  return total_reserved() + request.segment > most ? std::optional{most} : std::nullopt;
}

// R4.9
BlockIndex CachingAllocator::try_allocate(Request& request, bool retry) {
  if (retry) ++state_.stats.num_alloc_retries;
  if (exceeds_limit(request)) return kNoBlock;
  request.rejected_above = exceeded_fraction(request);
  if (request.rejected_above) return kNoBlock;
  const BlockIndex block = request.expandable ? allocate_expandable(request) : allocate_segment(request);
  const std::size_t group = group_of(request.pool);
  if (block != kNoBlock && group != 0) ++state_.groups[group].device_allocations;  // R7.9
  return block;
}

// R4.9.4
BlockIndex CachingAllocator::allocate_segment(const Request& request) {
  const auto base = source_.reserve(request.segment);
  if (!base) return kNoBlock;

  const BlockIndex index =
      add_segment({.base = *base, .size = request.segment, .stream = request.stream, .pool = request.pool},
                  /*mapped=*/true);
  MemoryStats& stats = state_.stats;
  stats.segment.increase(request.stat_class, 1);
  stats.reserved_bytes.increase(request.stat_class, static_cast<std::int64_t>(request.segment));
  if (is_oversize(request.segment)) stats.oversize_segments.increase(1);
  ++stats.num_device_alloc;
  tell(AllocatorEvent::Action::segment_alloc, *base, request.segment, request.stream);
  return index;
}

// R4.10: what was freed on the way stays freed.
OutOfMemory CachingAllocator::report_oom(const Request& request) {
  MemoryStats& stats = state_.stats;
  const Bytes device_free = source_.device_free();
  if (request.rejected_above) {
    ++stats.num_oom_rejections;
  } else {
    tell(AllocatorEvent::Action::oom, device_free, request.rounded, request.stream);
    ++stats.num_ooms;
  }

  OomAttempts tried = request.tried;
  tried.limit_refused = exceeds_limit(request);
  const bool hint_always = has_rule(state_.settings.torch, TorchRule::hint_always);
  const FreeBlock end{request.stream, kUnlimited, kUnlimited, kNoBlock};
  const BlockIndex largest = state_.pools[request.pool].free.previous(state_.blocks, end);
  return {.requested = request.size,
          .rounded = request.rounded,
          .segment = request.segment,
          .device_total = source_.device_total(),
          .device_free = device_free,
          .limit = state_.limit,
          .allocated = static_cast<Bytes>(stats.allocated_bytes.all().current),
          .reserved = total_reserved(),
          .private_pools_idle = private_pools_idle(),
          .largest_free_block = largest == kNoBlock ? 0 : state_.blocks[largest].size,
          .advises_expandable = hint_always || !state_.settings.expandable_segments,
          .tried = tried,
          .idle = idle_memory(request),
          .rejected_above = request.rejected_above,
          .segment_reserve = request.segment_reserve};
}

IdleMemory CachingAllocator::idle_memory(const Request& request) const {
  IdleMemory idle;
  for (const Block& block : state_.blocks) {
    if (!block.live || !block.mapped || block.allocated) continue;
    Bytes& kind = block.is_pending()                                         ? idle.waiting
                  : group_of(block.pool) != group_of(request.pool)           ? idle.other_pools
                  : block.stream != request.stream                           ? idle.other_streams
                  : is_large_pool(block.pool) != is_large_pool(request.pool) ? idle.other_size
                                                                             : idle.same_kind;
    kind += block.size;
  }
  return idle;
}

// R2.3 to R2.5: the exceptions of the search for a cached block; and the pools that are asked before an OOM
// (R7.5).

// R2.3: a block at the growing end counts with the unmapped tail behind it, so that holes are filled first.
// The walk ends at the first block that is not an improvement, or at a plain one.
BlockIndex CachingAllocator::walk_to_least_extent(BlockIndex candidate) {
  const auto extent = [this](const Block& block) {
    const bool open_ended = block.next != kNoBlock && !state_.blocks[block.next].mapped;
    return block.size + (open_ended ? state_.blocks[block.next].size : 0);
  };
  while (state_.blocks[candidate].expandable) {
    const Block& block = state_.blocks[candidate];
    const BlockIndex next = state_.pools[block.pool].free.next(state_.blocks, free_entry(block, candidate));
    if (next == kNoBlock || extent(state_.blocks[next]) >= extent(block)) break;
    candidate = next;
  }
  return candidate;
}

// R2.4: with the option off, expandable blocks are passed over.
BlockIndex CachingAllocator::first_plain_after(BlockIndex candidate) {
  while (candidate != kNoBlock && state_.blocks[candidate].expandable) {
    const Block& block = state_.blocks[candidate];
    candidate = state_.pools[block.pool].free.next(state_.blocks, free_entry(block, candidate));
  }
  return candidate;
}

// R7.5: only for requests of the default pools, only cached blocks, the oldest pool that has one. The rest of
// the request then follows that pool, as if expandable segments were off.
BlockIndex CachingAllocator::search_pools_for_oom(Request& request) {
  if (group_of(request.pool) != 0) return kNoBlock;
  for (const auto& [id, group] : state_.private_groups) {
    const PoolGroup& candidate = state_.groups[group];
    if (candidate.uses == 0 || !candidate.options.use_on_oom) continue;
    const auto pool = static_cast<PoolIndex>(2 * group + (is_large_pool(request.pool) ? 1 : 0));
    const BlockIndex found = search(pool, request.rounded, request.stream, false);
    if (found == kNoBlock) continue;
    request.pool = pool;
    request.expandable = false;
    return found;
  }
  return kNoBlock;
}

}  // namespace vramlab
