// PyTorch's allocator by itself: 19 MiB are served from a block of 20 (R3.1).
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/segments/sim_segments.hpp"

int main() {
  using namespace vramlab;
  SimulatedCard card{24_GiB, 0};
  SimSegments segments{card};
  CachingAllocator allocator{segments, {}};
  allocator.allocate(19_MiB, kDefaultStream);
  return allocator.stats().allocated_bytes.all().current == static_cast<std::int64_t>(20_MiB) ? 0 : 1;
}
