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
                    "compare '" VRAMLAB_SOURCE_DIR "/scenarios/find-phases.json' --device cuda",
                    "compare '" VRAMLAB_SOURCE_DIR "/scenarios/epoch-seven-billion.json' --device cuda",
                    "compare '" VRAMLAB_SOURCE_DIR "/scenarios/queue-one-card.json' --device cuda",
                    "validate-device --families",
                    "validate-device '" VRAMLAB_SOURCE_DIR "/tests/data/oracle/default_1.json.gz'",
                    "hold-card-memory", "perform-card-job"));

TEST(Device, UnknownOnesAreAnsweredWithTheRightOnes) {
  const Ran ran = run_program("run '" + kScenario + "' --policy settled --device cude");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, StartsWith("--device: \"cude\" is not a device. Did you mean \"cuda\""));
}

TEST(Device, WhatAMachineCannotDoIsRefusedByItsKey) {
  const auto refusal = [](const std::string& scenario) {
    const Ran ran = run_program("compare '" VRAMLAB_SOURCE_DIR "/scenarios/" + scenario + "' --device cuda");
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  const auto says = [](const char* text) {
    return AnyOf(StartsWith("this build has no CUDA;"), HasSubstr(text));
  };
  EXPECT_THAT(refusal("queue-race.json"), says("/fidelity: \"declared\" has no steps"));
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // which leaves the first, that is not there either
  EXPECT_THAT(refusal("queue-steps-mixed-day.json"), says("/cards: makes 8 cards, and this machine has"));
  EXPECT_THAT(refusal("find-two-cards.json"), says("/more_devices: makes 2 cards, and this machine has"));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(refusal("allocator/k1-14-minimal.json"), says("kind training, jobs, epoch and search."));
}

TEST(Device, ATimeScaleIsForACard) {
  const auto refusal = [](const std::string& options) {
    const Ran ran = run_program("compare '" + kScenario + "' " + options);
    EXPECT_EQ(ran.code, 2);
    return ran.err;
  };
  EXPECT_EQ(refusal("--time-scale 0.5"),
            "--time-scale: is for --device cuda: simulated steps wait for nothing.\n");
  for (const char* wrong : {"1.5", "-1", "nan", "inf"}) {
    EXPECT_EQ(refusal(std::string{"--device cuda --time-scale="} + wrong), "--time-scale: must be 0 to 1.\n");
  }
}

// The other processes are for the program itself.
TEST(Device, TheVerbsOfOtherProcessesAreInNoHelp) {
  EXPECT_THAT(run_program("help").out, Not(HasSubstr("hold-card-memory")));
  EXPECT_THAT(run_program("help").out, Not(HasSubstr("perform-card-job")));
  EXPECT_THAT(run_program("help").out, HasSubstr("validate-device"));
}

}  // namespace
}  // namespace vramlab
