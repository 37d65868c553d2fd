#include "sim/memory/direct_allocator.hpp"

#include <iterator>

#include "sim/memory/total_stats.hpp"

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

}  // namespace vramlab
