#include "fit/step_time_fit.hpp"

#include <gtest/gtest.h>

namespace vramlab {
namespace {

TimedPoint point(std::int64_t rows, std::int64_t length, double seconds) {
  return {{1, rows, length}, seconds};
}

TEST(StepTimeFit, FindsTheLawItWasMadeFrom) {
  std::vector<TimedPoint> points;
  for (const std::int64_t length : {16, 64, 128, 256}) {
    for (const std::int64_t rows : {100, 1000, 4000, 16000}) {
      points.push_back(point(
          rows, length,
          std::max(0.02, 0.005 + 4e-6 * static_cast<double>(rows) + 6e-5 * static_cast<double>(length))));
    }
  }
  const StepTimeForm law = fit_step_time(points, 1);
  for (const TimedPoint& one : points) {
    EXPECT_NEAR(to_seconds(law.duration(one.monomials)) / one.seconds, 1, 0.01);
  }
}

// A host that is held up: seven steps at the floor take 20 ms, nine take longer, each by another share.
TEST(StepTimeFit, ALowerLawIsTakenWhereItIsNearerToPointsLeftOut) {
  std::vector<TimedPoint> points;
  std::int64_t rows = 10;
  for (const double slower :
       {0.0, 0.12, 0.01, 0.6, 0.0, 0.2, 0.0, 0.5, 0.01, 0.25, 0.45, 0.0, 0.3, 0.01, 0.35, 0.4}) {
    points.push_back(point(rows++, 16, 0.02 * (1 + slower)));
  }
  for (const std::int64_t large : {40'000, 50'000, 60'000, 80'000}) {
    points.push_back(point(large, 16, 2e-6 * static_cast<double>(large)));
  }
  EXPECT_NEAR(to_seconds(fit_step_time(points, 1).duration(points[0].monomials)), 0.02, 0.001);
}

TEST(StepTimeFit, FewPointsGiveAConstant) {
  const StepTimeForm law = fit_step_time({point(1, 1, 0.02), point(9, 1, 0.03), point(5, 1, 0.021)}, 1);
  EXPECT_EQ(law, (StepTimeForm{0.021, 0, {}}));
  EXPECT_EQ(fit_step_time({}, 1), StepTimeForm{});
}

}  // namespace
}  // namespace vramlab
