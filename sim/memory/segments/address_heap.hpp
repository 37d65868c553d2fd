// The holes of a range of addresses.
#pragma once

#include <optional>

#include "core/size_map.hpp"
#include "core/units.hpp"

namespace vramlab {

/// Keeps the holes of [base, base + size). It does no rounding: sizes are taken as they are given.
class AddressHeap {
 public:
  /// A range with nothing in it; `size` > 0 and base + size must fit 64 bits.
  AddressHeap(Address base, Bytes size) : base_(base), size_(size) { holes_.set(base, size); }

  /// The lowest place for `size` bytes at or above `from`. Empty if there is none.
  std::optional<Address> take(Bytes size, Address from = 0);

  /// The upper end of the highest hole that is larger than `size`. Empty if there is none.
  std::optional<Address> take_highest(Bytes size);

  /// Takes exactly [address, address + size); false, and nothing taken, if part of it is in use or outside.
  bool take_at(Address address, Bytes size);

  /// Returns what was taken. Throws InternalError for bytes that lie outside or were not taken.
  void give(Address address, Bytes size);

  /// Whether nothing is taken.
  [[nodiscard]] bool is_unused() const { return holes_.size() == 1 && holes_.largest() == size_; }

  [[nodiscard]] Bytes largest_hole() const { return holes_.largest(); }

 private:
  Address base_;
  Bytes size_;
  SizeMap<Address> holes_;  ///< sizes by start; never touching each other
};

}  // namespace vramlab
