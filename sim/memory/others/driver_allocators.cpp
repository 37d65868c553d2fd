#include "sim/memory/others/driver_allocators.hpp"

#include <algorithm>
#include <iterator>

#include "sim/memory/memory_stats.hpp"

namespace vramlab {
namespace {

constexpr Bytes kPage = 2_MiB;          // R10.1
constexpr Bytes kSharingLimit = 1_MiB;  // assumed; R10.1 shows sharing for 300 KiB
constexpr Bytes kAlignment = 512;       // likewise

}  // namespace

AllocationResult DirectAllocator::allocate(Bytes size, StreamId) {
  if (size == 0) return Allocation{kNullBlock, 0};
  const std::optional<Address> address = place(size);
  if (!address) return report_oom(size);
  count_allocation(stats_, size, size);
  add_to_total(stats_.segment, 1);
  ++stats_.num_device_alloc;
  return Allocation{live_.add({*address, size}), *address};
}

std::optional<Address> DirectAllocator::place(Bytes size) {
  if (size > source_.device_total()) return std::nullopt;
  return size <= kSharingLimit ? place_in_shared_page(round_up(size, kAlignment)) : reserve(size);
}

// R10.1: six requests of 300 KiB lie in one page, 300 KiB apart; the seventh opens the next.
std::optional<Address> DirectAllocator::place_in_shared_page(Bytes size) {
  for (auto& [base, page] : shared_pages_) {
    if (const auto address = page.take(size)) return address;
  }
  const std::optional<Address> base = reserve(kPage);
  if (!base) return std::nullopt;
  return shared_pages_.emplace(*base, AddressHeap(*base, kPage)).first->second.take(size);
}

std::optional<Address> DirectAllocator::reserve(Bytes size) {
  const std::optional<Address> base = source_.reserve(size);
  if (base) add_to_total(stats_.reserved_bytes, round_up(size, kPage));
  return base;
}

void DirectAllocator::release(Address base, Bytes size) {
  source_.release(base);
  take_from_total(stats_.reserved_bytes, round_up(size, kPage));
}

void DirectAllocator::free(BlockId block) {
  if (block == kNullBlock) return;
  const Record record = live_.remove(block);
  count_free(stats_, record.requested, record.requested);
  take_from_total(stats_.segment, 1);
  ++stats_.num_device_free;
  if (record.requested > kSharingLimit) return release(record.address, record.requested);
  const auto page = std::prev(shared_pages_.upper_bound(record.address));
  page->second.give(record.address, round_up(record.requested, kAlignment));
  if (!page->second.is_unused()) return;
  release(page->first, kPage);
  shared_pages_.erase(page);
}

void DirectAllocator::reset_peak_stats() { reset_total_peaks(stats_); }

OutOfMemory DirectAllocator::report_oom(Bytes size) const {
  OutOfMemory oom;
  oom.requested = oom.rounded = oom.segment = size;
  oom.device_total = source_.device_total();
  oom.device_free = source_.device_free();
  oom.allocated = total_of(stats_.allocated_bytes);
  oom.reserved = total_of(stats_.reserved_bytes);
  return oom;
}

namespace {

// Holes between blocks cost no memory, so the device does not bound the addresses; and those of a recording
// may lie outside the range that the source gave.
constexpr Bytes kAddressSpace = Bytes{1} << 62;

// These counters have no totals of increases and decreases under this backend (12.1).
void set_current(StatArray& array, Bytes value) { array.set_whole(static_cast<std::int64_t>(value)); }

}  // namespace

AsyncAllocator::AsyncAllocator(SegmentSource& source, std::optional<Bytes> limit)
    : source_(source),
      limit_(limit),
      range_(source.reserve_range(round_up(source.device_total(), kChunk), kChunk)),
      heap_(0, kAddressSpace) {}

AllocationResult AsyncAllocator::allocate(Bytes size, StreamId) {
  if (size == 0) return Allocation{kNullBlock, 0};
  const std::optional<Address> address = is_refused(size) ? std::nullopt : place(size);
  supplied_.reset();
  if (!address) return report_oom(size);
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

void AsyncAllocator::count(Bytes allocated) {
  set_current(stats_.allocated_bytes, allocated);
  set_current(stats_.active_bytes, allocated);
  set_current(stats_.reserved_bytes, chunks_ * kChunk);
}

void AsyncAllocator::free(BlockId block) {
  if (block == kNullBlock) return;
  const Record record = live_.remove(block);
  const Bytes taken = round_up(record.requested, kAlignment);
  heap_.give(record.address, taken);
  leave_pieces(record.address, taken);
  count(total_of(stats_.allocated_bytes) - record.requested);
}

void AsyncAllocator::empty_cache() {
  const std::size_t needed = pieces_.size();
  if (needed < chunks_) source_.unmap(range_ + needed * kChunk, (chunks_ - needed) * kChunk);
  chunks_ = needed;
  count(total_of(stats_.allocated_bytes));
}

void AsyncAllocator::reset_peak_stats() { reset_total_peaks(stats_); }

OutOfMemory AsyncAllocator::report_oom(Bytes size) const {
  OutOfMemory oom;
  oom.requested = oom.rounded = oom.segment = size;
  oom.device_total = source_.device_total();
  oom.device_free = source_.device_free();
  oom.limit = limit_;
  oom.allocated = total_of(stats_.allocated_bytes);
  oom.reserved = total_of(stats_.reserved_bytes);
  return oom;
}

}  // namespace vramlab
