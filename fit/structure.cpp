#include "fit/structure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vramlab {

StructureGroups::StructureGroups(const FitParameters& parameters, std::uint32_t main_product)
    : parameters_(parameters), main_product_(main_product) {
  const std::size_t shapes = parameters.shapes.size();
  all_ = shapes >= kMostShapes ? ~ShapeSet{0} : (ShapeSet{1} << shapes) - 1;
  number_of(all_, all_);
}

std::uint32_t StructureGroups::number_of(ShapeSet in, ShapeSet within) {
  return add(in, within, within == all_);
}

std::uint32_t StructureGroups::nearest_number_of(ShapeSet in, ShapeSet within) {
  return add(in, within, false);
}

std::uint32_t StructureGroups::add(ShapeSet in, ShapeSet within, bool may_have_threshold) {
  if (in == within) {
    in = within = all_;
    may_have_threshold = true;
  }
  const auto [entry, fresh] =
      numbers_.try_emplace({in, within, may_have_threshold}, static_cast<std::uint32_t>(groups_.size()));
  if (fresh) {
    RecordedGroup group{.in = in, .within = within};
    if (may_have_threshold && in != within && !find_threshold(group, main_product_)) {
      for (std::uint32_t m = 1; m < parameters_.monomials.size(); ++m) {
        if (parameters_.monomials[m].degree() == 1 && find_threshold(group, m)) break;
      }
    }
    groups_.push_back(group);
  }
  return entry->second;
}

bool StructureGroups::find_threshold(RecordedGroup& group, std::uint32_t monomial) const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t low_in = kMost;
  std::int64_t high_in = 0;
  std::int64_t low_out = kMost;
  std::int64_t high_out = 0;
  for (std::size_t shape = 0; shape < parameters_.shapes.size(); ++shape) {
    const std::int64_t value = parameters_.monomials[monomial].value(parameters_.shapes[shape]).value_or(0);
    const bool in = (group.in >> shape & 1) != 0;
    (in ? low_in : low_out) = std::min(in ? low_in : low_out, value);
    (in ? high_in : high_out) = std::max(in ? high_in : high_out, value);
  }
  const bool above = high_out < low_in;
  if (!above && high_in >= low_out) return false;
  const auto below_it = static_cast<double>(above ? high_out : high_in);
  const auto above_it = static_cast<double>(above ? low_in : low_out);
  group.monomial = static_cast<std::int32_t>(monomial);
  group.from = std::llround(std::ceil(std::sqrt(below_it * above_it)));
  group.below = !above;
  return true;
}

}  // namespace vramlab
