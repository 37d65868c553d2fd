// R5.2 to R5.8: segments that grow by mapping pages into a reserved range.
#include <algorithm>

#include "core/error.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/caching/every_operation.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {

// R5.3: the size of the request, not of a segment, decides how much is mapped.
BlockIndex CachingAllocator::allocate_expandable(const Request& request) {
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

// R5.3.1: in address order, the first run of usable blocks around an unmapped one that is large enough.
BlockIndex CachingAllocator::find_growable(const Request& request) const {
  for (const UnmappedBlock& unmapped : state_.pools[request.pool].unmapped) {
    if (unmapped.stream != request.stream) continue;
    const BlockIndex start = start_if_enough(unmapped.block, request.rounded);
    if (start != kNoBlock) return start;
  }
  return kNoBlock;
}

BlockIndex CachingAllocator::start_if_enough(BlockIndex unmapped, Bytes size) const {
  const BlockTable& blocks = state_.blocks;
  const auto usable = [&](BlockIndex block) { return block != kNoBlock && blocks[block].is_idle(); };
  const BlockIndex previous = blocks[unmapped].previous;
  const BlockIndex start = usable(previous) ? previous : unmapped;
  Bytes run = 0;
  for (BlockIndex block = start; usable(block); block = blocks[block].next) {
    run += blocks[block].size;
    if (run >= size) return start;
  }
  return kNoBlock;
}

// R5.2: one unmapped block over a range of 9/8 of the device. No counter moves.
BlockIndex CachingAllocator::new_expandable_segment(const Request& request) {
  const Bytes page = is_large_pool(request.pool) ? state_.settings.large_segment_size : kSmallSegment;
  const Bytes total = source_.device_total();
  const Bytes range = round_up(total + total / 8, page);
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
  std::vector<UnmappedBlock>& list = state_.pools[block.pool].unmapped;
  const UnmappedBlock entry{block.stream, block.address, index};
  list.insert(std::lower_bound(list.begin(), list.end(), entry), entry);
}

void CachingAllocator::remove_unmapped(BlockIndex index) {
  const Block& block = state_.blocks[index];
  std::vector<UnmappedBlock>& list = state_.pools[block.pool].unmapped;
  const UnmappedBlock entry{block.stream, block.address, index};
  const auto found = std::lower_bound(list.begin(), list.end(), entry);
  if (found == list.end() || *found != entry)
    throw InternalError("block is not in its list of unmapped blocks");
  list.erase(found);
}

}  // namespace vramlab
