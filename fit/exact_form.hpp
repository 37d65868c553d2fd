// Finds the form that gives recorded sizes exactly, if one does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/size_form.hpp"

namespace vramlab {

/// One recorded size and the values of all monomials where it was recorded.
struct SizeSample {
  std::vector<std::int64_t> monomials;
  Bytes size = 0;

  friend auto operator<=>(const SizeSample&, const SizeSample&) = default;
};

/// A form with one, two, three or (if there are enough samples) all of the `candidates` (numbers of
/// monomials, likeliest first) that gives every sample to the byte; the fewest terms, then the likeliest.
///
/// Coefficients are positive fractions with a denominator of at most 64. A form needs one more distinct
/// sample than it has terms, so that it is always checked by one it was not made from.
std::optional<SizeForm> find_exact_form(std::vector<SizeSample> samples,
                                        std::span<const std::uint32_t> candidates);

}  // namespace vramlab
