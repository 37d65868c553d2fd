// R5.2 to R5.8: segments that grow by mapping pages into a reserved range.
#include <algorithm>

#include "core/error.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/caching/every_operation.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {

// R5.3: the size of the request, not of a segment, decides how much is mapped.
BlockIndex CachingAllocator::allocate_expandable(Request& request) {
  if (state_.settings.expandable_segments_reserve && request.rounded > segment_range(request)) {
    request.segment_reserve = segment_range(request);  // an allocation does not reach over two segments
    return kNoBlock;
  }
  BlockIndex block = find_growable(request);
  if (block == kNoBlock) block = new_expandable_segment(request);
  if (!state_.blocks[block].mapped) {
    block = map_block(block, std::min(state_.blocks[block].size, request.rounded));
    if (block == kNoBlock) return kNoBlock;
  }
  while (state_.blocks[block].size < request.rounded) {
    const Block& grown = state_.blocks[block];
    if (grown.next == kNoBlock) return kNoBlock;  // larger than the whole range, which is 9/8 of the card
    // R5.5: what an earlier turn mapped stays mapped and cached when a later one fails.
    block = map_block(grown.next, std::min(request.rounded - grown.size, state_.blocks[grown.next].size));
    if (block == kNoBlock) return kNoBlock;
  }
  remove_free(block);
  return block;
}

// R5.3.1: in address order, the first run of usable blocks around an unmapped one that is large enough. A run
// that is found too short is passed over until a block next to it is freed.
BlockIndex CachingAllocator::find_growable(const Request& request) {
  SizeMap<UnmappedBlock>& list = state_.pools[request.pool].unmapped;
  const UnmappedBlock first{request.stream, 0, 0};
  for (;;) {
    const auto* entry = list.first_fitting(request.rounded, first);
    if (entry == nullptr || entry->first.stream != request.stream) return kNoBlock;
    const UnmappedBlock unmapped = entry->first;
    const Bytes run = idle_run(unmapped.block, request.rounded);
    if (run < request.rounded) {
      list.set(unmapped, run);
      continue;
    }
    const BlockIndex previous = state_.blocks[unmapped.block].previous;
    return is_idle(previous) ? previous : unmapped.block;
  }
}

// Of the idle blocks from the lower neighbour on, as far as `enough`.
Bytes CachingAllocator::idle_run(BlockIndex unmapped, Bytes enough) const {
  const BlockIndex previous = state_.blocks[unmapped].previous;
  Bytes run = is_idle(previous) ? state_.blocks[previous].size : 0;
  for (BlockIndex block = unmapped; run < enough && is_idle(block); block = state_.blocks[block].next)
    run += state_.blocks[block].size;
  return run;
}

// A block of an expandable segment has become a cached one, or grown: the runs that it is part of are those
// of the unmapped blocks below it, as far as all is idle, and of the next one above.
void CachingAllocator::forget_idle_runs(BlockIndex cached) {
  const auto forget = [&](BlockIndex index) {
    const Block& block = state_.blocks[index];
    if (block.mapped) return;
    SizeMap<UnmappedBlock>& list = state_.pools[block.pool].unmapped;
    const UnmappedBlock entry = unmapped_entry(block, index);
    if (list.find(entry)->second != kUnlimited) list.set(entry, kUnlimited);
  };
  if (const BlockIndex next = state_.blocks[cached].next; next != kNoBlock) forget(next);
  for (BlockIndex at = state_.blocks[cached].previous; is_idle(at); at = state_.blocks[at].previous)
    forget(at);
}

// R5.2: 9/8 of the device, or what `expandable_segments_reserve` says, in whole pages.
Bytes CachingAllocator::segment_range(const Request& request) const {
  const Bytes page = is_large_pool(request.pool) ? state_.settings.large_segment_size : kSmallSegment;
  const Bytes total = source_.device_total();
  const auto& reserve = state_.settings.expandable_segments_reserve;
  return round_up(reserve ? reserve->of(total) : total + total / 8, page);
}

// One unmapped block over a reserved range. No counter moves.
BlockIndex CachingAllocator::new_expandable_segment(const Request& request) {
  const Bytes page = is_large_pool(request.pool) ? state_.settings.large_segment_size : kSmallSegment;
  const Bytes range = segment_range(request);
  const Address base = source_.reserve_range(range, page);
  const BlockIndex index =
      add_segment({.base = base, .size = range, .page = page, .stream = request.stream, .pool = request.pool},
                  /*mapped=*/false);
  add_unmapped(index);
  return index;
}

// R5.4: whole pages from the start of an unmapped block, all or nothing. Returns the cached block that the
// new memory became part of.
BlockIndex CachingAllocator::map_block(BlockIndex index, Bytes size) {
  const Block& unmapped = state_.blocks[index];
  const Address address = unmapped.address;
  const StreamId stream = unmapped.stream;
  const StatClass c = class_of(unmapped.pool);
  const Bytes mapped = round_up(size, state_.segments[unmapped.segment].page);
  if (!source_.map(address, mapped)) return kNoBlock;

  remove_unmapped(index);
  if (mapped < state_.blocks[index].size) add_unmapped(state_.blocks.cut(index, mapped));
  state_.blocks[index].mapped = true;
  state_.blocks[index].requested = 0;  // R8.9
  const BlockIndex merged = merge_with_neighbours(index, true).block;
  add_free(merged);
  forget_idle_runs(merged);

  state_.stats.reserved_bytes.increase(c, static_cast<std::int64_t>(mapped));
  ++state_.stats.num_device_alloc;  // per call, not per page
  tell(AllocatorEvent::Action::segment_map, address, mapped, stream);
  return merged;
}

// R5.8: gives back the whole pages of a cached block; what lies before and behind them stays cached.
void CachingAllocator::unmap_block(BlockIndex index) {
  const Block block = state_.blocks[index];
  const Segment segment = state_.segments[block.segment];
  const Bytes offset = block.address - segment.base;
  const Bytes low = round_up(offset, segment.page);
  const Bytes high = (offset + block.size) / segment.page * segment.page;
  if (low >= high) return;

  remove_free(index);
  BlockIndex middle = index;
  if (low > offset) {
    middle = state_.blocks.cut(index, low - offset);
    state_.blocks[index].requested = 0;
    add_free(index);
  }
  if (state_.blocks[middle].size > high - low) {
    const BlockIndex tail = state_.blocks.cut(middle, high - low);
    state_.blocks[tail].requested = 0;
    add_free(tail);
  }
  source_.unmap(segment.base + low, high - low);
  state_.blocks[middle].mapped = false;
  middle = merge_with_neighbours(middle, false).block;
  add_unmapped(middle);

  state_.stats.reserved_bytes.decrease(class_of(block.pool), static_cast<std::int64_t>(high - low));
  ++state_.stats.num_device_free;
  tell(AllocatorEvent::Action::segment_unmap, segment.base + low, high - low, segment.stream);
  count_device_release(block.pool);

  if (!state_.blocks[middle].is_split()) {
    remove_unmapped(middle);
    source_.release_range(segment.base);
    retire_segment(block.segment);
    state_.blocks.retire(middle);
  }
}

// R0.2: by stream and address.
void CachingAllocator::add_unmapped(BlockIndex index) {
  const Block& block = state_.blocks[index];
  state_.pools[block.pool].unmapped.set(unmapped_entry(block, index), kUnlimited);
}

void CachingAllocator::remove_unmapped(BlockIndex index) {
  const Block& block = state_.blocks[index];
  if (!state_.pools[block.pool].unmapped.erase(unmapped_entry(block, index)))
    throw InternalError("block is not in its list of unmapped blocks");
}

}  // namespace vramlab
