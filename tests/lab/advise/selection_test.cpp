// The cheapest choice under a budget.
#include "lab/advise/selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vramlab {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kUnit = 1 << 20;

// Three changes that take 30, 20 and 20 from a peak of 100; the greedy choice for 60 is the first and a
// second.
SelectionProblem three(double first_cost) {
  SelectionProblem problem;
  problem.changes = {{first_cost, 0}, {2, 1}, {2, 2}};
  problem.moments = {{100 * kUnit, {{0, -30 * kUnit}, {1, -20 * kUnit}, {2, -20 * kUnit}}},
                     {40 * kUnit, {{0, 25 * kUnit}}}};
  return problem;
}

TEST(SelectionTest, TakesTheCheapestUnderTheBudget) {
  if (!has_solver()) GTEST_SKIP() << "no cbc on the PATH";
  const auto found = cheapest(three(2.5), 60 * kUnit, true);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->chosen, ElementsAre(false, true, true));  // 4 instead of 4.5
  EXPECT_EQ(found->cost, 4);
  EXPECT_TRUE(found->exact);
}

TEST(SelectionTest, HeedsEveryMomentAndEveryGroup) {
  if (!has_solver()) GTEST_SKIP() << "no cbc on the PATH";
  SelectionProblem problem = three(0.1);
  EXPECT_THAT(cheapest(problem, 64 * kUnit, true)->chosen, ElementsAre(false, true, true));  // not 40 + 25
  EXPECT_FALSE(cheapest(problem, 29 * kUnit, true));
  problem.changes[2].group = 1;
  EXPECT_FALSE(cheapest(problem, 64 * kUnit, true));
}

TEST(SelectionTest, WithoutASolverSaysHowFarItMayBeOff) {
  const auto found = cheapest(three(2.5), 66 * kUnit, false);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->chosen,
              ElementsAre(true, true, false));  // 30 for 2.5 is more for its cost than 20 for 2
  EXPECT_EQ(found->cost, 4.5);
  EXPECT_DOUBLE_EQ(found->bound, 2.9);  // 30 for 2.5, and a fifth of 20 for 2
  EXPECT_FALSE(found->exact);
}

TEST(SelectionTest, TheLeastPeakIsWhatAddingReaches) {
  const Selection found = least_peak(three(1));
  EXPECT_THAT(found.chosen, ElementsAre(true, true, false));
  EXPECT_EQ(three(1).peak(found.chosen), 65 * kUnit);
}

}  // namespace
}  // namespace vramlab
