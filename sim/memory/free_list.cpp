#include "sim/memory/free_list.hpp"

#include <iterator>

#include "sim/core/error.hpp"

namespace vramlab {

void OrderedFreeList::insert(std::span<const Block> blocks, BlockIndex index) {
  blocks_.insert(free_entry(blocks[index], index));
}

void OrderedFreeList::erase(std::span<const Block> blocks, BlockIndex index) {
  if (blocks_.erase(free_entry(blocks[index], index)) == 0) {
    throw InternalError("a cached block has changed its size or place");
  }
}

BlockIndex OrderedFreeList::first_not_less(std::span<const Block>, StreamId stream, Bytes size) const {
  const auto found = blocks_.lower_bound({stream, size, 0, kNoBlock});
  return found == blocks_.end() || found->stream != stream ? kNoBlock : found->block;
}

BlockIndex OrderedFreeList::next(std::span<const Block>, const FreeBlock& position) const {
  const auto found = blocks_.upper_bound(position);
  return found == blocks_.end() || found->stream != position.stream ? kNoBlock : found->block;
}

BlockIndex OrderedFreeList::previous(std::span<const Block>, const FreeBlock& position) const {
  const auto found = blocks_.lower_bound(position);
  if (found == blocks_.begin() || std::prev(found)->stream != position.stream) return kNoBlock;
  return std::prev(found)->block;
}

void OrderedFreeList::append_all(std::span<const Block>, std::vector<BlockIndex>& out) const {
  for (const FreeBlock& block : blocks_) out.push_back(block.block);
}

void FreeList::refuse() { throw InternalError("block is not in its free list"); }

BlockIndex FreeList::next(std::span<const Block> blocks, const FreeBlock& position) const {
  return kind_ == FreeListKind::binned ? binned_.next(blocks, position) : ordered_.next(blocks, position);
}

BlockIndex FreeList::previous(std::span<const Block> blocks, const FreeBlock& position) const {
  return kind_ == FreeListKind::binned ? binned_.previous(blocks, position)
                                       : ordered_.previous(blocks, position);
}

std::vector<BlockIndex> FreeList::in_order(std::span<const Block> blocks) const {
  std::vector<BlockIndex> all;
  binned_.append_all(blocks, all);
  ordered_.append_all(blocks, all);
  return all;
}

}  // namespace vramlab
