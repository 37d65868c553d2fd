#include "sim/memory/segments/address_heap.hpp"

#include "core/error.hpp"

namespace vramlab {

std::optional<Address> AddressHeap::take(Bytes size, Address from) {
  if (take_at(from, size)) return from;  // in the hole that `from` lies in
  const auto* hole = holes_.first_fitting(size, from);
  if (hole == nullptr) return std::nullopt;
  const Address place = hole->first;
  take_at(place, size);
  return place;
}

std::optional<Address> AddressHeap::take_highest(Bytes size) {
  const auto* hole = holes_.last_fitting(size + 1);
  if (hole == nullptr) return std::nullopt;
  const auto [start, length] = *hole;
  holes_.set(start, length - size);
  return start + length - size;
}

bool AddressHeap::take_at(Address address, Bytes size) {
  const auto* hole = holes_.find(address);
  if (hole == nullptr) hole = holes_.below(address);
  if (hole == nullptr) return false;
  const auto [start, length] = *hole;
  const Bytes before = address - start;
  if (before > length || size > length - before) return false;
  holes_.erase(start);
  if (before > 0) holes_.set(start, before);
  if (const Bytes after = length - before - size; after > 0) holes_.set(address + size, after);
  return true;
}

void AddressHeap::give(Address address, Bytes size) {
  const auto* after = holes_.not_below(address);
  const auto* before = holes_.below(address);
  const bool overlaps = (after != nullptr && after->first - address < size) ||
                        (before != nullptr && before->first + before->second > address);
  if (overlaps || address < base_ || address - base_ > size_ || size > size_ - (address - base_)) {
    throw InternalError("a range of addresses is given back that was not taken");
  }
  const Address start =
      before != nullptr && before->first + before->second == address ? before->first : address;
  Address end = address + size;
  if (after != nullptr && after->first == end) {
    end += after->second;
    holes_.erase(after->first);
  }
  holes_.set(start, end - start);
}

}  // namespace vramlab
