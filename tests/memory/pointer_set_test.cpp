// The yardstick of the benchmark does what the allocator does: equal addresses for equal calls.
#include <random>
#include <utility>
#include <vector>

#include "bench/pointer_set_allocator.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

TEST(PointerSetAllocator, GivesTheAddressesOfTheCachingAllocator) {
  Rig rig;
  SimulatedCard card{80_GiB, 0};
  SimSegments segments{card};
  PointerSetAllocator yardstick{segments};
  std::vector<std::pair<BlockId, Address>> live;
  std::mt19937_64 random{7};
  for (int i = 0; i < 5000; ++i) {
    if (live.size() > 200 || (!live.empty() && random() % 3 == 0)) {
      std::swap(live[random() % live.size()], live.back());
      rig.give(live.back().first);
      yardstick.free(live.back().second);
      live.pop_back();
    } else {
      const Bytes size = 1 + random() % (random() % 2 == 0 ? 1_MiB : 40_MiB);
      const auto block = rig.allocator.allocate(size, kDefaultStream);
      ASSERT_TRUE(block);
      ASSERT_EQ(yardstick.allocate(size), block->address) << "operation " << i;
      live.emplace_back(block->block, block->address);
    }
  }
}

}  // namespace
}  // namespace vramlab
