#include "sim/memory/others/live_blocks.hpp"

#include <algorithm>
#include <iterator>

#include "core/error.hpp"

namespace vramlab {

std::optional<Address> AddressHeap::take(Bytes size, Address from) {
  for (const auto& [start, length] : holes_) {
    if (length < size) continue;
    const Address place = std::max(start, from);
    if (take_at(place, size)) return place;
  }
  return std::nullopt;
}

bool AddressHeap::take_at(Address address, Bytes size) {
  auto hole = holes_.upper_bound(address);
  if (hole == holes_.begin()) return false;
  hole = std::prev(hole);
  const auto [start, length] = *hole;
  const Bytes before = address - start;
  if (before > length || size > length - before) return false;
  holes_.erase(hole);
  if (before > 0) holes_.emplace(start, before);
  if (const Bytes after = length - before - size; after > 0) holes_.emplace(address + size, after);
  return true;
}

void AddressHeap::give(Address address, Bytes size) {
  auto after = holes_.lower_bound(address);
  const auto before = after == holes_.begin() ? holes_.end() : std::prev(after);
  const bool overlaps = (after != holes_.end() && after->first - address < size) ||
                        (before != holes_.end() && before->first + before->second > address);
  if (overlaps || address < base_ || address - base_ > size_ || size > size_ - (address - base_)) {
    throw InternalError("a range of addresses is given back that was not taken");
  }
  if (after != holes_.end() && address + size == after->first) {
    size += after->second;
    holes_.erase(after);
  }
  if (before != holes_.end() && before->first + before->second == address) {
    before->second += size;
  } else {
    holes_.emplace(address, size);
  }
}

}  // namespace vramlab
