// Where an operation occurs: at all parameters, beyond a threshold, or as at the nearest recorded shape.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "fit/parameters.hpp"

namespace vramlab {

/// The groups of a model; number 0 is what always occurs.
class StructureGroups {
 public:
  StructureGroups(const FitParameters& parameters, std::uint32_t main_product);

  /// The group of what occurs at `in`, of the shapes of `within`. A threshold on the main product or on a
  /// single parameter is taken where it describes `in`, at the geometric middle of its two neighbours,
  /// inclusive; but only for whole tensors (`within` = all shapes).
  std::uint32_t number_of(ShapeSet in, ShapeSet within);

  /// The same, where the nearest recorded shape decides and no threshold.
  std::uint32_t nearest_number_of(ShapeSet in, ShapeSet within);

  [[nodiscard]] const std::vector<RecordedGroup>& groups() const { return groups_; }
  [[nodiscard]] ShapeSet all() const { return all_; }

 private:
  std::uint32_t add(ShapeSet in, ShapeSet within, bool may_have_threshold);
  [[nodiscard]] bool find_threshold(RecordedGroup& group, std::uint32_t monomial) const;

  const FitParameters& parameters_;
  std::uint32_t main_product_;
  ShapeSet all_ = 0;
  std::vector<RecordedGroup> groups_;
  std::map<std::tuple<ShapeSet, ShapeSet, bool>, std::uint32_t> numbers_;
};

}  // namespace vramlab
