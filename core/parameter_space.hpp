// The parameters of a workload that a policy may move, and where they may lie.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

/// One integer parameter of a workload (batch size, patch size, sequence length …).
struct Parameter {
  std::string name;
  std::int64_t low = 1;   ///< smallest value allowed
  std::int64_t high = 1;  ///< largest value allowed, at least `low`

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// Values of all parameters of a space, in its order.
using Point = std::vector<std::int64_t>;

/// The parameters of one workload, in the order that every `Point` of it has.
struct ParameterSpace {
  std::vector<Parameter> parameters;

  /// Index of the parameter called `name`; empty if the workload has none.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name == name) return i;
    }
    return std::nullopt;
  }

  /// `point` with every value moved into its bounds.
  [[nodiscard]] Point clamp(Point point) const {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      point[i] = std::clamp(point[i], parameters[i].low, parameters[i].high);
    }
    return point;
  }

  [[nodiscard]] std::size_t size() const { return parameters.size(); }

  friend bool operator==(const ParameterSpace&, const ParameterSpace&) = default;
};

}  // namespace vramlab
