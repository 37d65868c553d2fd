// A cached block as a free list sees it, and the order of R0.1.
#pragma once

#include <tuple>

#include "sim/core/units.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/block.hpp"

namespace vramlab {

/// A place in a free list: by stream, then size, then address.
struct FreeBlock {
  StreamId stream = 0;
  Bytes size = 0;
  Address address = 0;
  BlockIndex block = kNoBlock;

  [[nodiscard]] auto key() const { return std::tuple{stream, size, address}; }
  friend bool operator<(const FreeBlock& a, const FreeBlock& b) { return a.key() < b.key(); }
};

/// How `block`, at `index` of its table, stands in a free list.
inline FreeBlock free_entry(const Block& block, BlockIndex index) {
  return {block.stream, block.size, block.address, index};
}

}  // namespace vramlab
