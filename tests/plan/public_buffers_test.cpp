// Published lists of buffers (google/minimalloc, cappadokes/idealloc); skipped where they are absent. Their
// capacities and loads are those of the projects.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "plan/planner.hpp"
#include "plan/validator.hpp"
#include "recordings/scripts/buffer_list.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

const fs::path kPublicBuffers = fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data/buffers";

std::vector<Buffer> public_buffers(const std::string& name) {
  InputFile file{kPublicBuffers / name};
  return read_buffer_list(file).buffers;
}

class Minimalloc : public testing::TestWithParam<char> {};

TEST_P(Minimalloc, MeetsItsCapacity) {
  if (!fs::exists(kPublicBuffers)) GTEST_SKIP() << "no " << kPublicBuffers;
  constexpr Bytes kCapacity = 1'048'576;
  const std::vector<Buffer> buffers =
      public_buffers(std::string("minimalloc_") + GetParam() + ".1048576.csv");

  const MemoryPlan plan = plan_memory(buffers, {.capacity = kCapacity});

  EXPECT_LE(plan.planned, kCapacity);
  EXPECT_EQ(check_plan(buffers, plan.offsets).top, plan.planned);
}

INSTANTIATE_TEST_SUITE_P(Buffers, Minimalloc, testing::Range('A', 'L'),
                         [](const auto& one) { return std::string(1, one.param); });

struct PublicLoad {
  const char* name;
  std::size_t buffers;
  Bytes load;
};

class Idealloc : public testing::TestWithParam<PublicLoad> {};

// 0.2 % above the load at most is what the project's own allocator is known for.
TEST_P(Idealloc, IsPlannedWithinTwoThousandthsOfItsLoad) {
  if (!fs::exists(kPublicBuffers)) GTEST_SKIP() << "no " << kPublicBuffers;
  const std::vector<Buffer> buffers = public_buffers(std::string("idealloc/") + GetParam().name + ".csv");
  ASSERT_EQ(buffers.size(), GetParam().buffers);

  const MemoryPlan plan = plan_memory(buffers);

  EXPECT_EQ(plan.load, GetParam().load);
  EXPECT_LE(static_cast<double>(plan.planned), 1.002 * static_cast<double>(plan.load));
  EXPECT_EQ(check_plan(buffers, plan.offsets).top, plan.planned);
}

INSTANTIATE_TEST_SUITE_P(Buffers, Idealloc,
                         testing::Values(PublicLoad{"pangu_2.6B", 18'692, 5'530'099'775},
                                         PublicLoad{"resnet50", 1'042, 1'515'472'556},
                                         PublicLoad{"G_1", 816, 3'030'937'746}));

}  // namespace
}  // namespace vramlab
