#include "fit/step_time_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/statistics.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kUnknowns = 4;  // floor, base, two slopes
constexpr std::size_t kLeastPoints = 6;
constexpr int kMostSteps = 1500;
constexpr double kWorthATerm = 0.95;
constexpr double kWorthAShare = 0.001;  // of the duration
constexpr std::size_t kFolds = 4;
constexpr std::size_t kLeastToCompare = 12;  // points; fewer say too little about each other

/// Which share of the points should lie below the law. Launching can be held up and never hurried, so that a
/// lower one can be nearer to most points than the middle.
constexpr std::array kShares{0.5, 0.4, 0.3, 0.2};

using Unknowns = std::array<double, kUnknowns>;

/// Numbers of monomials; 0 = none.
struct LawProducts {
  std::uint32_t main = 0;
  std::uint32_t further = 0;
  std::uint32_t rounds = 0;
};

/// One choice of products, scaled so that all unknowns are of the size of the durations.
class Law {
 public:
  Law(const std::vector<TimedPoint>& points, double share, const LawProducts& products)
      : points_(points),
        share_(share),
        x_(products.main),
        y_(products.further),
        rounds_(products.rounds),
        x_scale_(largest(x_)),
        y_scale_(largest(y_)) {}

  [[nodiscard]] double loss(const Unknowns& u) const {
    double sum = 0;
    for (const TimedPoint& point : points_) {
      const double compute = std::abs(u[1]) + std::abs(u[2]) * part(point, x_, x_scale_) +
                             (y_ == 0 ? 0 : std::abs(u[3]) * part(point, y_, y_scale_));
      const double floor = std::abs(u[0]) * rounds_of(point);
      const double distance = std::log(std::max({floor, compute, 1e-9}) / point.seconds);
      sum += 2 * std::abs(distance) * (distance > 0 ? 1 - share_ : share_);
    }
    return sum;
  }

  [[nodiscard]] StepTimeForm form(const Unknowns& u) const {
    StepTimeForm form{std::abs(u[0]), std::abs(u[1]), {{x_, std::abs(u[2]) / x_scale_}}};
    form.rounds = rounds_;
    if (y_ != 0) form.slopes.push_back({y_, std::abs(u[3]) / y_scale_});
    return form;
  }

  [[nodiscard]] Unknowns start(double share) const {
    std::vector<double> of_round;
    double most = 0;
    for (const TimedPoint& point : points_) {
      of_round.push_back(point.seconds / rounds_of(point));
      most = std::max(most, point.seconds);
    }
    std::sort(of_round.begin(), of_round.end());
    const double low = of_round[of_round.size() / 4];
    return {low, low * 0.3, share * most, (1 - share) * most};
  }

 private:
  [[nodiscard]] double rounds_of(const TimedPoint& point) const {
    return rounds_ == 0 ? 1.0 : std::max(1.0, part(point, rounds_, 1));
  }

  [[nodiscard]] double largest(std::uint32_t m) const {
    double most = 1;
    for (const TimedPoint& point : points_) most = std::max(most, static_cast<double>(point.monomials[m]));
    return most;
  }

  static double part(const TimedPoint& point, std::uint32_t m, double scale) {
    return static_cast<double>(point.monomials[m]) / scale;
  }

  const std::vector<TimedPoint>& points_;
  double share_;
  std::uint32_t x_;
  std::uint32_t y_;
  std::uint32_t rounds_;
  double x_scale_;
  double y_scale_;
};

/// Nelder and Mead's simplex; enough for four unknowns and a loss with corners.
Unknowns minimise(const Law& law, const Unknowns& start) {
  struct Corner {
    Unknowns at{};
    double loss = 0;
  };
  std::array<Corner, kUnknowns + 1> simplex;
  for (std::size_t i = 0; i <= kUnknowns; ++i) {
    simplex[i].at = start;
    if (i > 0) simplex[i].at[i - 1] *= 1.4;
    simplex[i].loss = law.loss(simplex[i].at);
  }
  const auto along = [&](const Unknowns& middle, double factor) {
    Corner corner;
    for (std::size_t u = 0; u < kUnknowns; ++u) {
      corner.at[u] = middle[u] + factor * (simplex.back().at[u] - middle[u]);
    }
    corner.loss = law.loss(corner.at);
    return corner;
  };
  for (int step = 0; step < kMostSteps; ++step) {
    std::stable_sort(simplex.begin(), simplex.end(),
                     [](const auto& a, const auto& b) { return a.loss < b.loss; });
    Unknowns middle{};
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      for (std::size_t u = 0; u < kUnknowns; ++u) middle[u] += simplex[i].at[u] / kUnknowns;
    }
    Corner moved = along(middle, -1);
    if (moved.loss < simplex[0].loss) {
      const Corner further = along(middle, -2);
      if (further.loss < moved.loss) moved = further;
    } else if (moved.loss >= simplex[kUnknowns - 1].loss) {
      moved = along(middle, 0.5);
    }
    if (moved.loss < simplex.back().loss) {
      simplex.back() = moved;
      continue;
    }
    for (std::size_t i = 1; i <= kUnknowns; ++i) {
      for (std::size_t u = 0; u < kUnknowns; ++u) {
        simplex[i].at[u] = 0.5 * (simplex[i].at[u] + simplex[0].at[u]);
      }
      simplex[i].loss = law.loss(simplex[i].at);
    }
  }
  return simplex[0].at;
}

StepTimeForm fit_share(const std::vector<TimedPoint>& points, LawProducts products, double below) {
  StepTimeForm best;
  double least = 0;
  for (std::uint32_t y = 0; y < points[0].monomials.size(); ++y) {
    if (y == products.main) continue;
    products.further = y;
    const Law law(points, below, products);
    for (const double share : {0.9, 0.5, 0.1}) {
      const Unknowns found = minimise(law, law.start(share));
      const double loss = law.loss(found);
      if (y == 0 && best.slopes.empty()) least = loss / kWorthATerm;  // anything is better than no law
      const bool better = y == 0 || best.slopes.size() > 1 ? loss < least : loss < kWorthATerm * least;
      if (!better) continue;
      least = loss;
      best = law.form(found);
    }
  }
  return best;
}

/// Median error, relative, over points that did not take part in the fit they are held against.
double left_out_error(const std::vector<TimedPoint>& points, const LawProducts& products, double below) {
  std::vector<double> errors;
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<TimedPoint> others;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (i % kFolds != fold) others.push_back(points[i]);
    }
    const StepTimeForm law = fit_share(others, products, below);
    for (std::size_t i = fold; i < points.size(); i += kFolds) {
      errors.push_back(std::abs(to_seconds(law.duration(points[i].monomials)) / points[i].seconds - 1));
    }
  }
  return middle_of(std::move(errors));
}

// The range of what was timed where the host is the bottleneck; then of what was timed where it may be one,
// since it took so long elsewhere.
void note_host_range(const std::vector<TimedPoint>& points, StepTimeForm& law) {
  for (int pass = 0; pass < 2; ++pass) {
    StepTimeForm seen = law;
    for (const TimedPoint& point : points) {
      if (!law.at_floor(point.monomials)) continue;
      const double seconds = point.seconds / law.times(point.monomials);
      seen.least_at_floor = seen.most_at_floor == 0 ? seconds : std::min(seen.least_at_floor, seconds);
      seen.most_at_floor = std::max(seen.most_at_floor, seconds);
    }
    law = seen;
  }
}

}  // namespace

StepTimeForm fit_step_time(const std::vector<TimedPoint>& points, std::uint32_t main_product,
                           std::uint32_t rounds) {
  const LawProducts products{.main = main_product, .rounds = rounds};
  if (points.empty()) return {};
  if (points.size() < kLeastPoints) {
    std::vector<double> seconds;
    for (const TimedPoint& point : points) seconds.push_back(point.seconds);
    return {middle_of(seconds), 0, {}};
  }
  double below = kShares[0];
  if (points.size() >= kLeastToCompare) {
    double least = std::numeric_limits<double>::infinity();
    for (const double share : kShares) {
      const double error = left_out_error(points, products, share);
      if (error > least - kWorthAShare) continue;
      least = error;
      below = share;
    }
  }
  StepTimeForm law = fit_share(points, products, below);
  note_host_range(points, law);
  return law;
}

}  // namespace vramlab
