#include "lab/advise/front.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace vramlab {
namespace {

constexpr std::size_t kMostFront = 12;  // points that are shown
constexpr Bytes kHardlyLess = 100;      // a peak that is lower by one in so many bytes is the same (R10.8)

// The one that is nearest to its neighbours; never the ends or the first that fits.
void drop_one(const std::vector<AdvicePoint>& points, std::vector<std::size_t>& front) {
  const auto fits = std::ranges::find_if(front, [&](auto i) { return points[i].fits.value_or(false); });
  std::size_t nearest = 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i + 1 < front.size(); ++i) {
    if (front.begin() + static_cast<std::ptrdiff_t>(i) == fits) continue;
    const AdvicePoint& before = points[front[i - 1]];
    const AdvicePoint& after = points[front[i + 1]];
    const double gap = (after.time_ratio - before.time_ratio) *
                       static_cast<double>(before.peak_reserved - after.peak_reserved);
    if (gap >= least) continue;
    least = gap;
    nearest = i;
  }
  front.erase(front.begin() + static_cast<std::ptrdiff_t>(nearest));
}

}  // namespace

std::vector<std::size_t> front_of(const std::vector<AdvicePoint>& points) {
  std::vector<std::size_t> order(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::tuple(i > 0, points[i].time_ratio, points[i].peak_reserved);
  });
  std::vector<std::size_t> front;
  Bytes least = std::numeric_limits<Bytes>::max();
  bool fits = false;
  for (const std::size_t i : order) {
    const AdvicePoint& point = points[i];
    const bool fits_first = point.fits.value_or(false) && !fits;
    const bool needless = point.peak_reserved >= least - least / kHardlyLess;
    if (needless && !fits_first) continue;
    least = std::min(least, point.peak_reserved);
    fits = fits || fits_first;
    front.push_back(i);
  }
  while (front.size() > kMostFront) drop_one(points, front);
  return front;
}

std::optional<std::size_t> first_fit(const std::vector<AdvicePoint>& front) {
  for (std::size_t i = 0; i < front.size(); ++i) {
    if (front[i].fits.value_or(false)) return i;
  }
  return std::nullopt;
}

}  // namespace vramlab
