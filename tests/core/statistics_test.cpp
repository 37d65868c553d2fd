// Means, medians and quantiles, by hand.
#include "core/statistics.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace vramlab {
namespace {

TEST(Statistics, AreThoseWorkedByHand) {
  EXPECT_EQ(mean_of({1, 2, 6}), 3);
  EXPECT_EQ(median_of({9, 1, 4}), 4);
  EXPECT_EQ(median_of({9, 1, 4, 6}), 5);
  EXPECT_EQ(middle_of<double>({9, 1, 4, 6}), 6);
  EXPECT_EQ(middle_of<std::chrono::nanoseconds>({std::chrono::nanoseconds{3}}).count(), 3);
}

// The smallest of ten values that the share covers: nine tenths need nine of them, a little more all ten.
TEST(Statistics, AQuantileIsOneOfTheValues) {
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(quantile_of(values, 0), 1);
  EXPECT_EQ(quantile_of(values, 0.5), 5);
  EXPECT_EQ(quantile_of(values, 0.9), 9);
  EXPECT_EQ(quantile_of(values, 0.901), 10);
  EXPECT_EQ(quantile_of(values, 1), 10);
}

TEST(Statistics, OfNothingThereIsNone) {
  EXPECT_TRUE(std::isnan(mean_of({})));
  EXPECT_TRUE(std::isnan(median_of({})));
  EXPECT_TRUE(std::isnan(quantile_of({}, 0.5)));
}

}  // namespace
}  // namespace vramlab
