#include "sim/runs/step_performer.hpp"

#include <algorithm>

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

const StepPrograms::Program& StepPrograms::next(const Point& point) {
  const auto [entry, fresh] = shapes_.try_emplace(point);
  Shape& shape = entry->second;
  if (fresh) shape.id = shapes_.size();
  const std::size_t settled = model_.first_steps();
  const std::size_t variant = std::min(shape.visits++, settled);
  if (variant == shape.programs.size()) {
    shape.programs.push_back(
        {++programs_, shape.id, variant < settled ? model_.first_step(point, variant) : model_.step(point)});
  }
  return shape.programs[variant];
}

}  // namespace vramlab
