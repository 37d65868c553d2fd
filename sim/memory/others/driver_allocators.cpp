#include "sim/memory/others/driver_allocators.hpp"

#include <algorithm>
#include <iterator>

namespace vramlab {
namespace {

constexpr Bytes kPage = 2_MiB;          // R10.1
constexpr Bytes kSharingLimit = 1_MiB;  // assumed; R10.1 shows sharing for 300 KiB
constexpr Bytes kAlignment = 512;       // likewise

// Holes between blocks cost no memory, so the device does not bound the addresses; and those of a recording
// may lie outside the range that the source gave.
constexpr Bytes kAddressSpace = Bytes{1} << 62;

}  // namespace

AllocationResult DirectAllocator::allocate(Bytes size, StreamId) {
  if (size == 0) return Allocation{kNullBlock, 0};
  const std::optional<Address> address = place(size);
  if (!address) return out_of_memory(size);
  count_allocation(size, size);
  stats_.segment.increase_whole(1);
  ++stats_.num_device_alloc;
  return Allocation{live_.add({*address, size}), *address};
}

std::optional<Address> DirectAllocator::place(Bytes size) {
  if (size > source_.device_total()) return std::nullopt;
  return size <= kSharingLimit ? place_in_shared_page(round_up(size, kAlignment)) : reserve(size);
}

// R10.1: six requests of 300 KiB lie in one page, 300 KiB apart; the seventh opens the next.
std::optional<Address> DirectAllocator::place_in_shared_page(Bytes size) {
  std::optional<Address> base;
  if (const auto* lowest = largest_holes_.first_fitting(size, 0)) {
    base = lowest->first;
  } else {
    base = reserve(kPage);
    if (!base) return std::nullopt;
  }
  AddressHeap& page = shared_pages_.try_emplace(*base, *base, kPage).first->second;
  const auto address = page.take(size);
  largest_holes_.set(*base, page.largest_hole());
  return address;
}

std::optional<Address> DirectAllocator::reserve(Bytes size) {
  const std::optional<Address> base = source_.reserve(size);
  if (base) stats_.reserved_bytes.increase_whole(round_up(size, kPage));
  return base;
}

void DirectAllocator::release(Address base, Bytes size) {
  source_.release(base);
  stats_.reserved_bytes.decrease_whole(round_up(size, kPage));
}

void DirectAllocator::free(BlockId block) {
  if (block == kNullBlock) return;
  const LiveBlock freed = live_.remove(block);
  count_free(freed.requested, freed.requested);
  stats_.segment.decrease_whole(1);
  ++stats_.num_device_free;
  if (freed.requested > kSharingLimit) return release(freed.address, freed.requested);
  const auto page = std::prev(shared_pages_.upper_bound(freed.address));
  page->second.give(freed.address, round_up(freed.requested, kAlignment));
  if (!page->second.is_unused()) return largest_holes_.set(page->first, page->second.largest_hole());
  release(page->first, kPage);
  largest_holes_.erase(page->first);
  shared_pages_.erase(page);
}

AsyncAllocator::AsyncAllocator(SegmentSource& source, std::optional<Bytes> limit)
    : PlainAllocator(source),
      limit_(limit),
      range_(source.reserve_range(round_up(source.device_total(), kChunk), kChunk)),
      heap_(0, kAddressSpace) {}

AllocationResult AsyncAllocator::allocate(Bytes size, StreamId) {
  if (size == 0) return Allocation{kNullBlock, 0};
  const std::optional<Address> address = is_refused(size) ? std::nullopt : place(size);
  supplied_.reset();
  if (!address) {
    OutOfMemory oom = out_of_memory(size);
    oom.limit = limit_;
    return oom;
  }
  count(total_of(stats_.allocated_bytes) + size);
  return Allocation{live_.add({*address, size}), *address};
}

// 12.1: the limit holds the sum of what was asked for; the pool itself may exceed it.
bool AsyncAllocator::is_refused(Bytes size) const {
  if (size > source_.device_total()) return true;
  return limit_ && total_of(stats_.allocated_bytes) + size > *limit_;
}

std::optional<Address> AsyncAllocator::place(Bytes size) {
  const Bytes taken = round_up(size, kAlignment);
  std::optional<Address> address = supplied_;
  if (!address || !heap_.take_at(*address, taken)) address = heap_.take(taken, range_);
  enter_pieces(*address, taken);
  if (grow_to(pieces_.size())) return address;
  leave_pieces(*address, taken);
  heap_.give(*address, taken);
  return std::nullopt;
}

void AsyncAllocator::enter_pieces(Address address, Bytes size) {
  const std::uint64_t last = (address + size - 1) / kChunk;
  for (std::uint64_t piece = address / kChunk; piece <= last; ++piece) ++pieces_[piece];
}

void AsyncAllocator::leave_pieces(Address address, Bytes size) {
  const std::uint64_t last = (address + size - 1) / kChunk;
  for (std::uint64_t piece = address / kChunk; piece <= last; ++piece) {
    const auto found = pieces_.find(piece);
    if (--found->second == 0) pieces_.erase(found);
  }
}

// 12.1: chunks move to whatever piece needs one, so only their number counts. The source sees them side by
// side from the start of the range.
bool AsyncAllocator::grow_to(std::size_t chunks) {
  if (chunks <= chunks_) return true;
  if (!source_.map(range_ + chunks_ * kChunk, (chunks - chunks_) * kChunk)) return false;
  chunks_ = chunks;
  return true;
}

// These counters have no totals of increases and decreases under this backend (12.1).
void AsyncAllocator::count(Bytes allocated) {
  stats_.allocated_bytes.set_whole(allocated);
  stats_.active_bytes.set_whole(allocated);
  stats_.reserved_bytes.set_whole(chunks_ * kChunk);
}

void AsyncAllocator::free(BlockId block) {
  if (block == kNullBlock) return;
  const LiveBlock freed = live_.remove(block);
  const Bytes taken = round_up(freed.requested, kAlignment);
  heap_.give(freed.address, taken);
  leave_pieces(freed.address, taken);
  count(total_of(stats_.allocated_bytes) - freed.requested);
}

void AsyncAllocator::empty_cache() {
  const std::size_t needed = pieces_.size();
  if (needed < chunks_) source_.unmap(range_ + needed * kChunk, (chunks_ - needed) * kChunk);
  chunks_ = needed;
  count(total_of(stats_.allocated_bytes));
}

}  // namespace vramlab
