// What an allocator keeps that has no blocks of its own: holes of a range, and its live allocations.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "sim/memory/caching/blocks.hpp"

namespace vramlab {

/// Keeps the holes of [base, base + size). It does no rounding: sizes are taken as they are given.
class AddressHeap {
 public:
  /// A range with nothing in it; `size` > 0 and base + size must fit 64 bits.
  AddressHeap(Address base, Bytes size) : base_(base), size_(size), holes_{{base, size}} {}

  /// The lowest place for `size` bytes at or above `from`. Empty if there is none.
  std::optional<Address> take(Bytes size, Address from = 0);

  /// Takes exactly [address, address + size); false, and nothing taken, if part of it is in use or outside.
  bool take_at(Address address, Bytes size);

  /// Returns what was taken. Throws InternalError for bytes that lie outside or were not taken.
  void give(Address address, Bytes size);

  /// Whether nothing is taken.
  [[nodiscard]] bool is_unused() const {
    return holes_.size() == 1 && holes_.begin()->first == base_ && holes_.begin()->second == size_;
  }

 private:
  Address base_;
  Bytes size_;
  std::map<Address, Bytes> holes_;  ///< sizes by start; never touching each other
};

// The live allocations of an allocator that keeps no blocks of its own, by BlockId.

/// One `Record` for every live allocation. Ids are dense: the one freed last is given next.
template <class Record>
class LiveBlocks {
 public:
  BlockId add(Record record) {
    if (unused_.empty()) {
      records_.push_back(std::move(record));
      return BlockId{static_cast<BlockIndex>(records_.size() - 1)};
    }
    const BlockIndex index = unused_.back();
    unused_.pop_back();
    records_[index] = std::move(record);
    return BlockId{index};
  }

  /// Ends an allocation and returns its record. Throws InternalError for a block that is not live.
  Record remove(BlockId block) {
    const auto index = static_cast<BlockIndex>(block);
    if (index >= records_.size() || !records_[index]) {
      throw InternalError("a block is freed that is not live");
    }
    unused_.push_back(index);
    return *std::exchange(records_[index], std::nullopt);
  }

 private:
  std::vector<std::optional<Record>> records_;
  std::vector<BlockIndex> unused_;
};

}  // namespace vramlab
