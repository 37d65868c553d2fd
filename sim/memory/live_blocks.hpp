// The live allocations of an allocator that keeps no blocks of its own, by BlockId.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/memory/block.hpp"

namespace vramlab {

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
