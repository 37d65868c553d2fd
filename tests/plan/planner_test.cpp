// Plans of buffers whose optimum was worked out by hand.
#include "plan/planner.hpp"

#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "plan/validator.hpp"
#include "recordings/scripts/buffer_list.hpp"

namespace vramlab {
namespace {

BufferList own_list(const std::string& name) {
  InputFile file{std::filesystem::path{VRAMLAB_SOURCE_DIR} / "tests/data/plan" / name};
  return read_buffer_list(file);
}

// b lies at one end while a is there: at the bottom, or the same upside down. Then at time 2 the places above
// it are those of d, e and f; at 4, e lies at an end since h needs four in a row, so at the top. g needs
// three in a row at time 3 beside d and e: d must lie right below e or at the bottom. At time 1 it can lie at
// 2 or 4, and e has 4: so d lies at 2, and g has nowhere to go. With 6 it has.
TEST(Planner, ProvesThatTheLoadDoesNotDo) {
  const BufferList list = own_list("above-load.csv");

  const MemoryPlan plan = plan_memory(list.buffers);

  EXPECT_EQ(plan.load, 5U);
  EXPECT_EQ(plan.bound, 6U);
  EXPECT_EQ(plan.planned, 6U);
  EXPECT_TRUE(plan.is_least());
  EXPECT_EQ(check_plan(list.buffers, plan.offsets).top, 6U);
}

// Its offsets are a plan in which no byte is idle before time 5.
TEST(Planner, MeetsTheLoadWhereAPlanIsKnown) {
  const BufferList list = own_list("rack.csv");
  ASSERT_EQ(check_plan(list.buffers, list.offsets).top, 6U);

  const MemoryPlan plan = plan_memory(list.buffers);

  EXPECT_EQ(plan.load, 6U);
  EXPECT_EQ(plan.planned, 6U);
}

TEST(Planner, SaysWhetherACapacityIsMet) {
  const std::vector<Buffer> buffers = own_list("above-load.csv").buffers;

  EXPECT_EQ(plan_memory(buffers, {.capacity = 6}).planned, 6U);
  const MemoryPlan refused = plan_memory(buffers, {.capacity = 5});
  EXPECT_EQ(refused.bound, 6U);  // ruled out
  EXPECT_EQ(plan_memory(buffers, {.capacity = 4}).bound,
            6U);  // less than is alive at once: the least is told
}

TEST(Planner, PlansGroupsThatNeverMeetOnTheirOwn) {
  std::vector<Buffer> buffers = own_list("above-load.csv").buffers;
  for (const Buffer& buffer : own_list("rack.csv").buffers) {
    buffers.push_back({buffer.lower + 100, buffer.upper + 100, 10 * buffer.size});
  }

  const MemoryPlan plan = plan_memory(buffers);

  EXPECT_EQ(plan.planned, 60U);
  EXPECT_EQ(plan.bound, 60U);
}

TEST(Planner, PlansNothingAndBuffersWithoutASize) {
  EXPECT_EQ(plan_memory({}).planned, 0U);
  const MemoryPlan plan = plan_memory({{0, 5, 0}, {0, 5, 0}});
  EXPECT_EQ(plan.planned, 0U);
  EXPECT_TRUE(plan.is_least());
}

TEST(Planner, TakesTheLargestSizesAndTheWidestTimes) {
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  const Bytes half = kMostBufferBytes / 2;

  const MemoryPlan plan = plan_memory({{kFirst, 0, half}, {-1, kLast, half}});

  EXPECT_EQ(plan.planned, kMostBufferBytes);
}

TEST(Planner, RefusesWhatCannotBePlanned) {
  EXPECT_THROW(plan_memory({{1, 1, 5}}), InputError);
  EXPECT_THROW(plan_memory({{2, 1, 5}}), InputError);
  EXPECT_THROW(plan_memory({{0, 1, kMostBufferBytes}, {5, 6, 1}}), InputError);
}

TEST(Planner, IsTheSameEveryTime) {
  const std::vector<Buffer> buffers = own_list("above-load.csv").buffers;
  EXPECT_EQ(plan_memory(buffers).offsets, plan_memory(buffers).offsets);
}

}  // namespace
}  // namespace vramlab
