#include "sim/memory/others/bfc_allocator.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr Bytes kFirstRegion = 2_MiB;
constexpr Bytes kDefaultRemainder = 128_MiB;

Bytes smallest_remainder_of(const BfcOptions& options) {
  if (options.fragmentation_fraction <= 0) return kDefaultRemainder;
  return static_cast<Bytes>(options.fragmentation_fraction * static_cast<double>(options.limit));
}

}  // namespace

BfcOptions jax_options(Bytes device_total) {
  return {.limit = device_total - (device_total + 3) / 4,  // ⌊3/4 · total⌋
          .allow_growth = false};
}

BfcAllocator::BfcAllocator(SegmentSource& source, const BfcOptions& options)
    : PlainAllocator(source),
      options_(options),
      smallest_remainder_(smallest_remainder_of(options)),
      region_size_(options.allow_growth ? std::min(options.limit, kFirstRegion) : options.limit) {}

AllocationResult BfcAllocator::allocate(Bytes size, StreamId) {
  if (size == 0) return Allocation{kNullBlock, 0};
  if (size > options_.limit) return report_oom(size);
  const Bytes rounded = bfc_rounded(size);
  BlockIndex chunk = search(rounded);
  if (chunk == kNoBlock && extend(rounded)) chunk = search(rounded);
  if (chunk == kNoBlock && collect_garbage(rounded) && extend(rounded)) chunk = search(rounded);
  if (chunk == kNoBlock) return report_oom(size);
  return hand_out(chunk, size, rounded);
}

BlockIndex BfcAllocator::search(Bytes rounded) const {
  for (std::size_t bin = bfc_bin_of(rounded); bin < kBfcBins; ++bin) {
    const auto found = bins_[bin].lower_bound({rounded, 0, 0});
    if (found != bins_[bin].end()) return found->index;
  }
  return kNoBlock;
}

// A chunk is cut if the rest is as large as the request, or too large to waste.
Allocation BfcAllocator::hand_out(BlockIndex index, Bytes size, Bytes rounded) {
  remove_from_bin(index);
  const Bytes whole = chunks_[index].size;
  if (whole >= 2 * rounded || whole - rounded >= smallest_remainder_) cut(index, rounded);
  Chunk& chunk = chunks_[index];
  chunk.in_use = true;
  chunk.requested = size;
  largest_alloc_size_ = std::max(largest_alloc_size_, chunk.size);
  count_allocation(chunk.size, size);
  return {BlockId{index}, chunk.address};
}

// The low part stays this chunk; what is above becomes a free one.
void BfcAllocator::cut(BlockIndex index, Bytes size) {
  const BlockIndex rest = new_chunk(chunks_[index].address + size, chunks_[index].size - size);
  Chunk& low = chunks_[index];
  low.size = size;
  chunks_[rest].previous = index;
  chunks_[rest].next = low.next;
  if (low.next != kNoBlock) chunks_[low.next].previous = rest;
  low.next = rest;
  insert_in_bin(rest);
}

void BfcAllocator::free(BlockId block) {
  if (block == kNullBlock) return;
  auto index = static_cast<BlockIndex>(block);
  if (index >= chunks_.size() || !chunks_[index].live || !chunks_[index].in_use) {
    throw InternalError("a chunk is freed that is not live");
  }
  Chunk& chunk = chunks_[index];
  count_free(chunk.size, chunk.requested);
  chunk.in_use = false;
  chunk.requested = 0;
  if (const BlockIndex next = free_neighbour(chunk.next); next != kNoBlock) {
    remove_from_bin(next);
    absorb_next(index);
  }
  if (const BlockIndex previous = free_neighbour(chunk.previous); previous != kNoBlock) {
    remove_from_bin(previous);
    absorb_next(previous);
    index = previous;
  }
  insert_in_bin(index);
}

BlockIndex BfcAllocator::free_neighbour(BlockIndex neighbour) const {
  return neighbour != kNoBlock && !chunks_[neighbour].in_use ? neighbour : kNoBlock;
}

void BfcAllocator::absorb_next(BlockIndex index) {
  Chunk& chunk = chunks_[index];
  const BlockIndex gone = chunk.next;
  chunk.size += chunks_[gone].size;
  chunk.next = chunks_[gone].next;
  if (chunk.next != kNoBlock) chunks_[chunk.next].previous = index;
  chunks_[gone] = {};
  unused_.push_back(gone);
}

BlockIndex BfcAllocator::new_chunk(Address address, Bytes size) {
  BlockIndex index = static_cast<BlockIndex>(chunks_.size());
  if (unused_.empty()) {
    chunks_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
  }
  chunks_[index].address = address;
  chunks_[index].size = size;
  chunks_[index].live = true;
  return index;
}

void BfcAllocator::insert_in_bin(BlockIndex index) {
  bins_[bfc_bin_of(chunks_[index].size)].insert({chunks_[index].size, chunks_[index].address, index});
}

void BfcAllocator::remove_from_bin(BlockIndex index) {
  bins_[bfc_bin_of(chunks_[index].size)].erase({chunks_[index].size, chunks_[index].address, index});
}

// The size of regions doubles with every extension, or as often as the request needs, if that is more. Past
// the limit it has no effect and stays as it is. (Where nine tenths, rounded up, are as much as before, the
// original would ask on for ever; here that is a failure.)
bool BfcAllocator::extend(Bytes rounded) {
  const Bytes available = (options_.limit - pool_bytes()) / kBfcUnit * kBfcUnit;
  if (rounded > available) return false;
  bool doubled = false;
  for (; region_size_ < rounded; region_size_ *= 2) doubled = true;
  Bytes size = std::min(region_size_, available);
  std::optional<Address> base = source_.reserve(size);
  while (!base) {
    const Bytes smaller = bfc_backed_off(size);
    if (smaller < rounded || smaller >= size) return false;
    size = smaller;
    base = source_.reserve(size);
  }
  if (!doubled && region_size_ < options_.limit) region_size_ *= 2;
  add_region(*base, size);
  return true;
}

void BfcAllocator::add_region(Address base, Bytes size) {
  const BlockIndex chunk = new_chunk(base, size);
  regions_.emplace(base, Region{size, chunk});
  insert_in_bin(chunk);
  stats_.segment.increase_whole(1);
  stats_.reserved_bytes.increase_whole(size);
  ++stats_.num_device_alloc;
}

bool BfcAllocator::is_unused(const Region& region) const {
  const Chunk& first = chunks_[region.first];
  return !first.in_use && first.size == region.size;
}

// All entirely free regions go, or none: only if they and what was never taken suffice for the request.
bool BfcAllocator::collect_garbage(Bytes rounded) {
  if (!options_.garbage_collection) return false;
  Bytes unused = 0;
  for (const auto& [base, region] : regions_) unused += is_unused(region) ? region.size : 0;
  if (unused == 0 || rounded > options_.limit - pool_bytes() + unused) return false;
  release_unused_regions();
  return true;
}

void BfcAllocator::release_unused_regions() {
  for (auto region = regions_.begin(); region != regions_.end();) {
    if (!is_unused(region->second)) {
      ++region;
      continue;
    }
    remove_from_bin(region->second.first);
    chunks_[region->second.first] = {};
    unused_.push_back(region->second.first);
    source_.release(region->first);
    stats_.segment.decrease_whole(1);
    stats_.reserved_bytes.decrease_whole(region->second.size);
    ++stats_.num_device_free;
    region = regions_.erase(region);
  }
}

Bytes BfcAllocator::largest_free() const {
  const auto fullest =
      std::find_if(bins_.rbegin(), bins_.rend(), [](const auto& bin) { return !bin.empty(); });
  return fullest == bins_.rend() ? 0 : fullest->rbegin()->size;
}

BfcStats BfcAllocator::bfc_stats() const {
  return {.num_allocs = stats_.allocation.all().allocated,
          .bytes_in_use = total_of(stats_.allocated_bytes),
          .peak_bytes_in_use = static_cast<Bytes>(stats_.allocated_bytes.all().peak),
          .largest_alloc_size = largest_alloc_size_,
          .bytes_limit = options_.limit,
          .pool_bytes = pool_bytes(),
          .peak_pool_bytes = static_cast<Bytes>(stats_.reserved_bytes.all().peak),
          .largest_free_chunk = largest_free()};
}

double BfcAllocator::fragmentation() const {
  const Bytes free = pool_bytes() - total_of(stats_.allocated_bytes);
  return free == 0 ? 0.0 : 1.0 - static_cast<double>(largest_free()) / static_cast<double>(free);
}

OutOfMemory BfcAllocator::report_oom(Bytes size) {
  ++stats_.num_ooms;
  OutOfMemory oom = out_of_memory(size);
  if (size <= options_.limit) oom.rounded = oom.segment = bfc_rounded(size);
  oom.limit = options_.limit;
  oom.largest_free_block = largest_free();
  return oom;
}

std::vector<BfcRegionView> BfcAllocator::regions() const {
  std::vector<BfcRegionView> views;
  for (const auto& [base, region] : regions_) {
    BfcRegionView& copy = views.emplace_back(BfcRegionView{base, region.size, {}});
    for (BlockIndex chunk = region.first; chunk != kNoBlock; chunk = chunks_[chunk].next) {
      copy.chunks.push_back(chunks_[chunk]);
    }
  }
  return views;
}

std::vector<BfcChunkView> BfcAllocator::bin(std::size_t index) const {
  std::vector<BfcChunkView> views;
  for (const FreeChunk& chunk : bins_[index]) views.push_back(chunks_[chunk.index]);
  return views;
}

}  // namespace vramlab
