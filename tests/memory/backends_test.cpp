// The allocators to choose from, and the pool of fixed chunks.
#include "sim/memory/others/backends.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "sim/memory/others/fixed_pool.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

struct FixedPoolRig {
  explicit FixedPoolRig(Bytes total = 1_GiB) : card(total, 0), segments(card), pool(segments) {}

  SimulatedCard card;
  SimSegments segments;
  FixedPoolAllocator pool;
};

// The published MemoryPool: a dict from sizes to chunks, from whose end it takes.
TEST(FixedPool, UsesTheChunkOfTheSameSizeThatCameBackLast) {
  FixedPoolRig rig;
  const auto a = rig.pool.allocate(40_MiB, 0);
  const auto b = rig.pool.allocate(40_MiB, 0);
  rig.pool.free(a->block);
  rig.pool.free(b->block);
  EXPECT_EQ(rig.pool.allocate(40_MiB, 0)->address, b->address);
  EXPECT_EQ(rig.pool.allocate(40_MiB, 0)->address, a->address);
  EXPECT_EQ(rig.pool.stats().reserved_bytes.all().current, static_cast<std::int64_t>(80_MiB));
}

TEST(FixedPool, NeitherCutsNorJoinsNorGivesBack) {
  FixedPoolRig rig;
  rig.pool.free(rig.pool.allocate(600_MiB, 0)->block);
  EXPECT_EQ(rig.pool.idle(), 600_MiB);
  const auto refused = rig.pool.allocate(500_MiB, 0);  // 424 MiB are free on the card, 600 lie idle
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.oom().idle.other_size, 600_MiB);
  EXPECT_EQ(rig.pool.stats().num_ooms, 1);
  rig.pool.empty_cache();
  EXPECT_TRUE(rig.pool.allocate(500_MiB, 0));
}

TEST(Backends, AreReadByName) {
  for (const std::string& name : backend_names()) EXPECT_EQ(to_text(parse_backend(name)), name);
  const BackendChoice bfc = parse_backend("bfc:0.9:grow");
  EXPECT_EQ(bfc.share, 0.9);
  EXPECT_FALSE(bfc.preallocate);
  EXPECT_EQ(to_text(bfc), "bfc:0.9:grow");
  for (const char* bad : {"", "cub", "bfc:2", "bfc:0", "bfc:x", "direct:0.5"}) {
    EXPECT_THROW(parse_backend(bad), InputError) << bad;
  }
}

// JAX preallocates three quarters of the card, or XLA_PYTHON_CLIENT_MEM_FRACTION of it, and without
// XLA_PYTHON_CLIENT_PREALLOCATE the same share bounds what grows (docs.jax.dev, GPU memory allocation).
TEST(Backends, BfcHasAShareOfTheCard) {
  EXPECT_EQ(bfc_options(parse_backend("bfc"), 80_GiB, {}).limit, 60_GiB);
  EXPECT_EQ(bfc_options(parse_backend("bfc"), 80_GiB, {}).limit, jax_options(80_GiB).limit);
  EXPECT_FALSE(bfc_options(parse_backend("bfc"), 80_GiB, {}).allow_growth);
  EXPECT_EQ(bfc_options(parse_backend("bfc:0.5:grow"), 80_GiB, {}).limit, 40_GiB);
  EXPECT_TRUE(bfc_options(parse_backend("bfc:0.5:grow"), 80_GiB, {}).allow_growth);
  EXPECT_EQ(bfc_options(parse_backend("bfc"), 80_GiB, 10_GiB).limit, 10_GiB);
}

TEST(Backends, KeepToALimit) {
  for (const char* name : {"cudaMallocAsync", "direct", "bfc", "fixed-pool"}) {
    SimulatedCard card{8_GiB, 0};
    SimSegments segments{card};
    const auto allocator = make_backend(segments, parse_backend(name), 1_GiB);
    const auto first = allocator->allocate(600_MiB, 0);
    ASSERT_TRUE(first) << name;
    EXPECT_FALSE(allocator->allocate(500_MiB, 0)) << name;
    allocator->free(first->block);
    EXPECT_EQ(bool{allocator->allocate(500_MiB, 0)}, std::string(name) != "fixed-pool") << name;
  }
}

// As jax-ml/jax issue 13428 prints it.
TEST(Backends, RunOutOfMemoryInTheirOwnWords) {
  OutOfMemory oom;
  oom.requested = 6291456;
  EXPECT_EQ(
      backend_oom_message(parse_backend("bfc"), oom),
      "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
      "6291456 bytes.");
  EXPECT_THAT(backend_oom_message(parse_backend("direct"), oom), HasSubstr("CUDA out of memory."));
}

}  // namespace
}  // namespace vramlab
