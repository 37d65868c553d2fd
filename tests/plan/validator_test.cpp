// The check of plans, on plans that are wrong in one way each.
#include "plan/validator.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Two side by side, and one on top of both when they are gone.
const std::vector<Buffer> kThree{{0, 10, 100}, {5, 10, 50}, {10, 20, 150}};

TEST(PlanCheck, SaysWhatASoundPlanNeeds) {
  const PlanCheck check = check_plan(kThree, {0, 100, 0});

  EXPECT_TRUE(check.sound());
  EXPECT_EQ(check.load, 150U);
  EXPECT_EQ(check.top, 150U);
}

TEST(PlanCheck, CountsGapsToWhatIsNeeded) { EXPECT_EQ(check_plan(kThree, {0, 300, 0}).top, 350U); }

TEST(PlanCheck, FindsOneByteThatTwoShare) {
  EXPECT_THAT(check_plan(kThree, {0, 99, 0}).faults,
              ElementsAre("buffers 0 and 1 live at once and share memory"));
  EXPECT_THAT(check_plan(kThree, {49, 0, 0}).faults,
              ElementsAre("buffers 0 and 1 live at once and share memory"));
}

TEST(PlanCheck, NamesBuffersByTheirIds) {
  EXPECT_THAT(check_plan(kThree, {0, 99, 0}, {"x", "y", "z"}).faults,
              ElementsAre("buffers x and y live at once and share memory"));
}

TEST(PlanCheck, FindsABufferInsideAnother) {
  EXPECT_THAT(check_plan({{0, 4, 100}, {1, 2, 10}}, {0, 40}).faults, SizeIs(1));
  EXPECT_THAT(check_plan({{1, 2, 10}, {0, 4, 100}}, {40, 0}).faults, SizeIs(1));
}

TEST(PlanCheck, LetsABufferBeginWhereAnotherEnds) {
  EXPECT_TRUE(check_plan({{0, 5, 8}, {5, 6, 8}}, {0, 0}).sound());
  EXPECT_FALSE(check_plan({{0, 6, 8}, {5, 6, 8}}, {0, 0}).sound());
}

TEST(PlanCheck, LetsBuffersWithoutASizeLieAnywhere) {
  const PlanCheck check = check_plan({{0, 5, 8}, {0, 5, 0}}, {0, 4});
  EXPECT_TRUE(check.sound());
  EXPECT_EQ(check.top, 8U);
}

TEST(PlanCheck, WantsAnOffsetOfEveryBuffer) {
  EXPECT_THAT(check_plan(kThree, {0, 100}).faults, ElementsAre("2 offsets for 3 buffers"));
}

TEST(PlanCheck, RefusesTimesThatRunBackwardsAndEndsThatOverflow) {
  EXPECT_THAT(check_plan({{3, 3, 1}}, {0}).faults, ElementsAre("buffer 0 does not end after it begins"));
  EXPECT_THAT(check_plan({{0, 1, 8}}, {std::numeric_limits<Bytes>::max() - 7}).faults,
              ElementsAre("buffer 0 ends above 2^63 - 1"));
}

TEST(PlanCheck, SaysNoMoreThanTwentyFaults) {
  EXPECT_THAT(check_plan(std::vector<Buffer>(100, {0, 1, 1}), std::vector<Bytes>(100)).faults, SizeIs(20));
}

TEST(PlanCheck, KnowsAPlanOfNothing) { EXPECT_TRUE(check_plan({}, {}).sound()); }

}  // namespace
}  // namespace vramlab
