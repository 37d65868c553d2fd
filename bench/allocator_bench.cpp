// The caching allocator with its binned free list against the same allocator over an ordered set, and against
// the structure of PyTorch's own allocator, in the same run: free one block, allocate another, with 2,000
// blocks live.
#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/pointer_set_allocator.hpp"
#include "lab/model/file.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/segments/sim_segments.hpp"

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

/// The caching allocator with one of its free lists; blocks are named by ids.
template <FreeListKind kind>
struct WholeRules {
  using Name = BlockId;
  CachingAllocator allocator;
  explicit WholeRules(SegmentSource& source) : allocator{source, {.free_list = kind}} {}
  Name allocate(Bytes size) { return allocator.allocate(size, kDefaultStream)->block; }
  void free(Name block) { allocator.free(block); }
};
using Binned = WholeRules<FreeListKind::binned>;
using OrderedSet = WholeRules<FreeListKind::ordered>;

struct PointerSet : PointerSetAllocator {
  using Name = Address;
  using PointerSetAllocator::PointerSetAllocator;
};

/// An allocator with 2,000 live blocks of random sizes.
template <class Allocator>
struct LivePool {
  SimulatedCard card{512_GiB, 0};
  SimSegments segments{card};
  Allocator allocator{segments};
  std::vector<typename Allocator::Name> blocks;
  std::mt19937_64 random{3};

  LivePool() {
    for (std::size_t i = 0; i < kLive; ++i) blocks.push_back(allocator.allocate(random_size(random)));
  }
};

// Any block goes, a block of any size comes.
template <class Allocator>
void churn(benchmark::State& state) {
  LivePool<Allocator> pool;
  std::array<std::pair<std::size_t, Bytes>, std::size_t{1} << 14> script;
  for (auto& [victim, size] : script) {
    victim = pool.random() % kLive;
    size = random_size(pool.random);
  }
  std::size_t next = 0;
  for (auto _ : state) {
    const auto& [victim, size] = script[next++ % script.size()];
    pool.allocator.free(pool.blocks[victim]);
    pool.blocks[victim] = pool.allocator.allocate(size);
  }
}

// As in training: temporaries of a step come and go in the same order and sizes, step after step.
template <class Allocator>
void steps(benchmark::State& state) {
  LivePool<Allocator> pool;
  std::array<Bytes, 512> sizes;
  for (Bytes& size : sizes) size = random_size(pool.random);
  std::array<typename Allocator::Name, sizes.size()> temporaries;
  constexpr std::size_t kLifetime = 256;  // of a temporary, in allocations
  std::size_t next = 0;
  for (; next < kLifetime; ++next) temporaries[next] = pool.allocator.allocate(sizes[next]);
  for (auto _ : state) {
    pool.allocator.free(temporaries[(next - kLifetime) % sizes.size()]);
    temporaries[next % sizes.size()] = pool.allocator.allocate(sizes[next % sizes.size()]);
    ++next;
  }
}

// One step of the super-resolution training, as recorded: about 1,200 allocations, activations freed in the
// reverse order, among the weights, gradients and optimizer state of the model.
template <class Allocator>
void training_step(benchmark::State& state) {
  const auto model = load_model_file(VRAMLAB_SOURCE_DIR "/models/superres-rrdb6.json");
  const StepProgram build = model->build();
  const StepProgram step = model->step({{12, 128}});
  SimulatedCard card{512_GiB, 0};
  SimSegments segments{card};
  Allocator allocator{segments};
  std::vector<std::optional<typename Allocator::Name>> slots(std::max(build.slots, step.slots));
  std::int64_t allocations = 0;
  const auto perform = [&](const StepProgram& program) {
    for (const MemoryOp& op : program.ops) {
      auto& slot = slots[op.slot];
      if (op.kind == MemoryOpKind::free && slot) {
        allocator.free(*slot);
        slot.reset();
      } else if (op.kind != MemoryOpKind::free && !slot) {
        slot = allocator.allocate(op.size);
        ++allocations;
      }
    }
  };
  perform(build);
  for (int i = 0; i < 3; ++i) perform(step);
  allocations = 0;
  for (auto _ : state) perform(step);
  state.SetItemsProcessed(allocations);
}

BENCHMARK(churn<Binned>);
BENCHMARK(churn<OrderedSet>);
BENCHMARK(churn<PointerSet>);
BENCHMARK(steps<Binned>);
BENCHMARK(steps<OrderedSet>);
BENCHMARK(steps<PointerSet>);
BENCHMARK(training_step<Binned>);
BENCHMARK(training_step<OrderedSet>);
BENCHMARK(training_step<PointerSet>);

}  // namespace
}  // namespace vramlab
