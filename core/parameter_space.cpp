#include "core/parameter_space.hpp"

#include <algorithm>

namespace vramlab {

std::optional<std::size_t> ParameterSpace::find(std::string_view name) const {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return i;
  }
  return std::nullopt;
}

Point ParameterSpace::clamp(Point point) const {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    point[i] = std::clamp(point[i], parameters[i].low, parameters[i].high);
  }
  return point;
}

}  // namespace vramlab
