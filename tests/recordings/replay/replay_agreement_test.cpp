// The comparison that validate-device rests on, without a card: two simulations stand for the two sides.
#include <gtest/gtest.h>

#include "recordings/open.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/replay/verification.hpp"
#include "sim/memory/segments/recorded_segments.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

constexpr Bytes kH100 = 85'017'493'504;

ReplayableRecording read(const std::string& name) {
  auto programs = read_replayable(VRAMLAB_SOURCE_DIR "/tests/data/" + name);
  EXPECT_EQ(programs.size(), 1u);
  return std::move(programs.at(0));
}

ReplaySetup setup_of(const ReplayableRecording& recorded) {
  ReplaySetup setup;
  setup.settings = recorded.program.settings;
  setup.limit = recorded.program.limit;
  return setup;
}

class ReplayAgreementTest : public testing::TestWithParam<const char*> {};

// A driver with other addresses, its bases noted and given to a second simulation.
TEST_P(ReplayAgreementTest, TheSameBasesGiveTheSameReplay) {
  const ReplayableRecording recorded = read(GetParam());
  const ReplaySetup setup = setup_of(recorded);
  SimulatedCard card{kH100};
  SimSegments driver{card, DriverAddresses::of_bare_process()};
  LoggedSegments logged{driver};
  const Bytes free = driver.device_free();
  const ReplayedProgram one = replay_program_on(logged, recorded.program, setup);
  RecordedSegments given{kH100, free};
  logged.supply(given);
  const ReplayAgreement agreement =
      compare_replays(one, replay_program_on(given, recorded.program, setup), true);
  EXPECT_TRUE(agreement.exact());
  EXPECT_EQ(agreement.actions, recorded.program.actions.size());
  EXPECT_GT(agreement.allocations, 500u);
  EXPECT_EQ(agreement.equal_addresses, agreement.allocations);
  EXPECT_EQ(agreement.equal_reserved, agreement.actions);
  EXPECT_EQ(agreement.equal_ooms, agreement.any_ooms);
}

INSTANTIATE_TEST_SUITE_P(Recordings, ReplayAgreementTest,
                         testing::Values("oracle/default_1.json.gz", "oracle/combo_1.json.gz",
                                         "oracle/expand_1.json.gz", "oracle/split32_1.json.gz",
                                         "oracle/poolsexpand_1.json.gz", "recorded/twostream.pickle.gz"));

TEST(ReplayAgreement, FindsTheFirstDifference) {
  const ReplayableRecording recorded = read("oracle/default_1.json.gz");
  ReplaySetup setup = setup_of(recorded);
  SimulatedCard card{kH100};
  SimSegments one{card};
  const ReplayedProgram limited = replay_program_on(one, recorded.program, setup);
  const Bytes limit = setup.limit.value();
  setup.limit.reset();
  SimulatedCard another{kH100};
  SimSegments two{another};
  const ReplayedProgram free = replay_program_on(two, recorded.program, setup);
  const ReplayAgreement agreement = compare_replays(limited, free, false);
  ASSERT_TRUE(agreement.first_difference);
  EXPECT_FALSE(agreement.exact());
  EXPECT_LE(limited.actions[*agreement.first_difference].reserved, limit);
  EXPECT_GT(free.actions[*agreement.first_difference].reserved, limit);  // that is what parted them
  EXPECT_EQ(agreement.equal_ooms, 0u);
  EXPECT_EQ(agreement.any_ooms, agreement.ooms);
}

// The recorded counters of PyTorch itself, with addresses from the fitted policy of the driver (R10.7).
TEST(ReplayAgreement, AnOperationLogIsMetByItsProgram) {
  const ReplayableRecording recorded = read("oracle/default_1.json.gz");
  SimulatedCard card{kH100};
  SimSegments segments{card, DriverAddresses::of_bare_process()};
  const RecordedAgreement agreement =
      compare_with_recording(recorded, replay_program_on(segments, recorded.program, setup_of(recorded)));
  EXPECT_GT(agreement.operations, 2900u);
  EXPECT_GT(agreement.ooms, 0u);
  EXPECT_EQ(agreement.equal_ooms, agreement.ooms);
  EXPECT_EQ(agreement.equal_reserved, agreement.operations);
}

TEST(ReplayableRecordings, AnotherAllocatorIsLeftOut) {
  EXPECT_TRUE(read_replayable(VRAMLAB_SOURCE_DIR "/tests/data/oracle/async_1.json.gz").empty());
}

}  // namespace
}  // namespace vramlab
