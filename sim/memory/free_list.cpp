#include "sim/memory/free_list.hpp"

#include <iterator>

#include "sim/core/error.hpp"

namespace vramlab {

void OrderedFreeList::insert(std::span<const Block> blocks, BlockIndex index) {
  blocks_.insert(free_entry(blocks[index], index));
}

void OrderedFreeList::erase(std::span<const Block> blocks, BlockIndex index) {
  blocks_.erase(free_entry(blocks[index], index));
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

FreeList::FreeList(FreeListKind kind) {
  if (kind == FreeListKind::ordered) list_.emplace<OrderedFreeList>();
}

void FreeList::refuse() { throw InternalError("block is not in its free list"); }

BlockIndex FreeList::next(std::span<const Block> blocks, const FreeBlock& position) const {
  return std::visit([&](const auto& list) { return list.next(blocks, position); }, list_);
}

BlockIndex FreeList::previous(std::span<const Block> blocks, const FreeBlock& position) const {
  return std::visit([&](const auto& list) { return list.previous(blocks, position); }, list_);
}

std::vector<BlockIndex> FreeList::in_order(std::span<const Block> blocks) const {
  std::vector<BlockIndex> all;
  std::visit([&](const auto& list) { list.append_all(blocks, all); }, list_);
  return all;
}

}  // namespace vramlab
