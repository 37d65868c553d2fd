// The description by which two allocators are known to behave alike from here on.
#include <algorithm>
#include <bit>

#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {
namespace {

// All that the rules obey. The memory fraction has become the limit, and is looked at again where what goes
// above it is rejected.
void append_settings(const AllocatorSettings& s, std::vector<std::uint64_t>& out) {
  out.insert(out.end(),
             {s.max_split_size, s.max_non_split_rounding, s.large_segment_size,
              std::bit_cast<std::uint64_t>(s.garbage_collection_threshold),
              std::uint64_t{s.expandable_segments} | std::uint64_t{s.graph_capture_record_stream_reuse} << 1 |
                  std::uint64_t{s.throw_on_cudamalloc_oom} << 2,
              static_cast<std::uint64_t>(s.torch.major), static_cast<std::uint64_t>(s.torch.minor)});
  out.insert(out.end(), s.roundup_power2_divisions.begin(), s.roundup_power2_divisions.end());
  if (s.throw_on_cudamalloc_oom) out.push_back(std::bit_cast<std::uint64_t>(s.per_process_memory_fraction));
  const auto& reserve = s.expandable_segments_reserve;
  out.push_back(reserve ? 1 + std::uint64_t{reserve->is_share} : 0);
  if (reserve) out.push_back(std::bit_cast<std::uint64_t>(reserve->value));
}

void append_group(const PoolGroup& group, std::vector<std::uint64_t>& out) {
  const PoolOptions& o = group.options;
  out.insert(out.end(), {static_cast<std::uint64_t>(group.id), static_cast<std::uint64_t>(group.uses),
                         static_cast<std::uint64_t>(group.device_allocations),
                         std::uint64_t{o.use_on_oom} | std::uint64_t{o.no_split} << 1 |
                             std::uint64_t{o.custom_allocator} << 2 | std::uint64_t{group.dropped} << 3});
}

std::uint64_t flags_of(const Block& block) {
  return std::uint64_t{block.allocated} | std::uint64_t{block.mapped} << 1 |
         std::uint64_t{block.has_stream_uses} << 2 | std::uint64_t{block.pending_events} << 3;
}

}  // namespace

void CachingAllocator::append_canonical_state(std::vector<std::uint64_t>& out) const {
  append_settings(state_.settings, out);
  out.push_back(state_.limit ? *state_.limit : kUnlimited);

  out.push_back(state_.groups.size());
  for (const PoolGroup& group : state_.groups) append_group(group, out);
  out.push_back(state_.contexts.size());
  for (const PoolContext& context : state_.contexts) {
    out.insert(out.end(),
               {context.group, std::uint64_t{context.captured.has_value()}, context.captured.value_or(0)});
  }

  std::vector<const Segment*> segments;
  for (const Segment& segment : state_.segments) {
    if (segment.live) segments.push_back(&segment);
  }
  std::sort(segments.begin(), segments.end(),
            [](const Segment* a, const Segment* b) { return a->base < b->base; });
  out.push_back(segments.size());
  for (const Segment* segment : segments) {
    out.insert(out.end(), {segment->base, segment->size, segment->page, segment->stream, segment->pool});
    for (BlockIndex i = segment->head; i != kNoBlock; i = state_.blocks[i].next) {
      // Addresses follow from the sizes. A cached block's requested size says nothing (R8.9).
      const Block& block = state_.blocks[i];
      out.insert(out.end(), {block.size, flags_of(block)});
      if (!block.is_idle()) {
        out.push_back(block.requested);
      } else if (block.mapped && gc_active()) {
        out.push_back(age(i));
      }
    }
  }

  // Deferred frees in the order they will be looked at; blocks by their address.
  const std::vector<PendingEvent> events = state_.events.in_order();
  out.push_back(events.size());
  for (const PendingEvent& event : events) {
    out.insert(out.end(), {event.stream, state_.blocks[event.block].address, std::uint64_t{event.finished}});
  }
  out.push_back(state_.parked.size());
  for (const BlockIndex block : state_.parked) out.push_back(state_.blocks[block].address);
  std::vector<std::pair<Address, StreamUse>> uses;
  for (const auto& [block, streams] : state_.stream_uses) {
    for (const StreamUse& use : streams) uses.emplace_back(state_.blocks[block].address, use);
  }
  std::stable_sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [address, use] : uses) {
    out.insert(out.end(), {address, use.stream, std::uint64_t{use.in_capture}});
  }
}

}  // namespace vramlab
