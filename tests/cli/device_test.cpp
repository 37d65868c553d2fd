// A real card, asked for where there is none (or where it is hidden): one sentence, and nothing done.
#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/json.hpp"
#include "tests/cli/program_run.hpp"

namespace vramlab {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class WithoutCard : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ::setenv("CUDA_VISIBLE_DEVICES", "", 1); }
  void TearDown() override { ::unsetenv("CUDA_VISIBLE_DEVICES"); }
};

const std::string kScenario = VRAMLAB_SOURCE_DIR "/scenarios/ratchet.json";

TEST_P(WithoutCard, IsToldSoInOneSentence) {
  const Ran ran = run_program(GetParam());
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err,
              AnyOf(StartsWith("this build has no CUDA;"), HasSubstr("cudaGetDeviceCount(&count) failed: ")));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, WithoutCard,
    testing::Values("run '" VRAMLAB_SOURCE_DIR "/scenarios/ratchet.json' --policy settled --device cuda",
                    "compare '" VRAMLAB_SOURCE_DIR "/scenarios/ratchet.json' --device cuda",
                    "validate-device '" VRAMLAB_SOURCE_DIR "/tests/data/oracle/default_1.json.gz'",
                    "hold-card-memory"));

TEST(Device, UnknownOnesAreAnsweredWithTheRightOnes) {
  const Ran ran = run_program("run '" + kScenario + "' --policy settled --device cude");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, StartsWith("--device: \"cude\" is not a device. Did you mean \"cuda\""));
}

TEST(Device, QueuesAreSimulated) {
  const Ran ran = run_program("compare '" VRAMLAB_SOURCE_DIR "/scenarios/queue-race.json' --device cuda");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, AnyOf(StartsWith("this build has no CUDA;"), HasSubstr("scenarios of kind training")));
}

// The holder is for the program itself.
TEST(Device, TheHolderIsInNoHelp) {
  EXPECT_THAT(run_program("help").out, Not(HasSubstr("hold-card-memory")));
  EXPECT_THAT(run_program("help").out, HasSubstr("validate-device"));
}

}  // namespace
}  // namespace vramlab
