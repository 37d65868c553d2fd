// The caching allocator with its binned free list against the same allocator over an ordered set, in the
// same run: free one block, allocate another, with 2,000 blocks live.
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/sim_segments.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kLive = 2000;

// Mostly activations of some MiB, a good part of small tensors: what a convolution network asks for.
Bytes random_size(std::mt19937_64& random) {
  const auto kind = random() % 10;
  if (kind < 3) return 512 + random() % 1_MiB;
  if (kind < 8) return 1_MiB + random() % 9_MiB;
  return 10_MiB + random() % 30_MiB;
}

/// An allocator with 2,000 live blocks of random sizes.
struct LivePool {
  SimulatedCard card{512_GiB, 0};
  SimSegments segments{card};
  CachingAllocator allocator;
  std::vector<BlockId> blocks;
  std::mt19937_64 random{3};

  explicit LivePool(FreeListKind kind) : allocator{segments, {.free_list = kind}} {
    for (std::size_t i = 0; i < kLive; ++i) blocks.push_back(allocate(random_size(random)));
  }
  BlockId allocate(Bytes size) { return allocator.allocate(size, kDefaultStream)->block; }
};

// Any block goes, a block of any size comes.
void churn(benchmark::State& state, FreeListKind kind) {
  LivePool pool{kind};
  std::vector<std::pair<std::size_t, Bytes>> script(1 << 14);
  for (auto& [victim, size] : script) {
    victim = pool.random() % kLive;
    size = random_size(pool.random);
  }
  std::size_t next = 0;
  for (auto _ : state) {
    const auto& [victim, size] = script[next++ % script.size()];
    pool.allocator.free(pool.blocks[victim]);
    pool.blocks[victim] = pool.allocate(size);
  }
}

// As in training: temporaries of a step come and go in the same order and sizes, step after step.
void steps(benchmark::State& state, FreeListKind kind) {
  LivePool pool{kind};
  std::vector<Bytes> sizes(600);
  for (Bytes& size : sizes) size = random_size(pool.random);
  std::vector<BlockId> temporaries(sizes.size());
  std::size_t next = 0;
  constexpr std::size_t kDepth = 300;  // how long a temporary lives, in allocations
  for (std::size_t i = 0; i < kDepth; ++i) temporaries[i] = pool.allocate(sizes[i]);
  next = kDepth;
  for (auto _ : state) {
    pool.allocator.free(temporaries[(next - kDepth) % sizes.size()]);
    temporaries[next % sizes.size()] = pool.allocate(sizes[next % sizes.size()]);
    ++next;
  }
}

BENCHMARK_CAPTURE(churn, binned, FreeListKind::binned);
BENCHMARK_CAPTURE(churn, ordered_set, FreeListKind::ordered);
BENCHMARK_CAPTURE(steps, binned, FreeListKind::binned);
BENCHMARK_CAPTURE(steps, ordered_set, FreeListKind::ordered);

}  // namespace
}  // namespace vramlab
