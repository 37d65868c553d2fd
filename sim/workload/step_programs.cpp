#include "sim/workload/step_programs.hpp"

#include <algorithm>

namespace vramlab {

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
