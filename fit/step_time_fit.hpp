// The law of a step's duration from timed points.
#pragma once

#include <cstdint>
#include <vector>

#include "models/forms.hpp"

namespace vramlab {

/// One timed point: values of all monomials, and the middle of its timings.
struct TimedPoint {
  std::vector<std::int64_t> monomials;
  double seconds = 0;
};

/// max(rounds · floor, base + slope · main product + slope · one further product), all at least 0, with the
/// smallest sum of |log(law / measured)|, weighted so that half of the points lie below the law, or four,
/// three or two tenths: whichever has the smallest median error, by a thousandth of the duration at least, at
/// points left out of the fit (four times a quarter of them; from twelve points on). The further product is
/// one of the first `monomials`, and left out unless it lowers that sum by 5 %. With fewer than six points
/// the law is a constant, the middle of the points. `rounds`: the monomial that says how often the host goes
/// round; 0 = once. The host may be the bottleneck wherever the card takes no longer than a step took that
/// was timed at the floor.
StepTimeForm fit_step_time(const std::vector<TimedPoint>& points, std::uint32_t main_product,
                           std::uint32_t rounds = 0);

}  // namespace vramlab
