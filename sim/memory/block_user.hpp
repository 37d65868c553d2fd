// What a program does with the memory of its blocks. Nothing on a pretended card; kernels on a real one.
#pragma once

#include "sim/memory/allocator.hpp"

namespace vramlab {

/// Told of everything that happens to the blocks of a CachingAllocator that does not happen inside it.
class BlockUser {
 public:
  virtual ~BlockUser() = default;

  /// `block`, `size` bytes at `address`, was allocated for work on `stream`.
  virtual void allocated(BlockId block, Address address, Bytes size, StreamId stream) = 0;

  /// `stream` uses the block as well (tensor.record_stream).
  virtual void stream_recorded(BlockId block, StreamId stream) = 0;

  /// The program is about to free the block: its last work on it is queued now.
  virtual void freeing(BlockId block) = 0;

  /// The program takes it for granted that other streams' work on a freed block is done: waits until it is.
  virtual void wait_for(BlockId block) = 0;

  /// The same for all work of the device.
  virtual void wait_for_all() = 0;
};

}  // namespace vramlab
