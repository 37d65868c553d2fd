#include "sim/workload/step_performer.hpp"

namespace vramlab {

MemoryView view_of(const MemoryStats& stats, Bytes total, Bytes device_free) {
  const auto bytes = [](std::int64_t counter) { return static_cast<Bytes>(counter); };
  return {.allocated = bytes(stats.allocated_bytes.all().current),
          .peak_allocated = bytes(stats.allocated_bytes.all().peak),
          .reserved = bytes(stats.reserved_bytes.all().current),
          .peak_reserved = bytes(stats.reserved_bytes.all().peak),
          .total = total,
          .device_free = device_free,
          .alloc_retries = static_cast<std::uint64_t>(stats.num_alloc_retries),
          .allocator_ooms = static_cast<std::uint64_t>(stats.num_ooms)};
}

}  // namespace vramlab
