// When requests went to private pools, read off the segments that are left at the end (spec 16.3, 16.5).
#pragma once

#include <span>
#include <vector>

#include "trace/torch_snapshot.hpp"

namespace vramlab {

/// A stretch of a history in which the requests of one stream went to a private pool, as in a graph capture.
struct PoolUse {
  SnapshotPool pool;
  StreamId stream = 0;
  std::size_t first = 0;  ///< entry of the first allocation in the pool
  std::size_t last = 0;   ///< entry of the last one
};

/// The stretches of one device in the order of their beginnings. The pool of an allocation is the one its
/// entry names (after torch 2.11), else that of the final segment in which it lies. Pools that were released
/// before the end leave no sign. A stretch ends where its stream allocates elsewhere, or where default
/// segments are released, which no capture does by itself.
std::vector<PoolUse> find_pool_uses(const TorchSnapshot& snapshot, int device);

}  // namespace vramlab
