// Of many replayed choices those that are worth showing.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lab/advise/advise.hpp"

namespace vramlab {

/// The first point, the program as it is, and those that no cheaper one makes needless, cheapest first, a
/// dozen at most: what reserves less than a cheaper one by under a hundredth is left out, but never the first
/// that fits.
std::vector<std::size_t> front_of(const std::vector<AdvicePoint>& points);

/// The first that fits.
std::optional<std::size_t> first_fit(const std::vector<AdvicePoint>& front);

}  // namespace vramlab
