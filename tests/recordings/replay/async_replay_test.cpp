// What the simulation of backend:cudaMallocAsync meets of a recording, and what it does not
// (docs/fidelity.md).
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/replay/oracle_replay.hpp"

namespace vramlab {
namespace {

const std::filesystem::path kFixtures = std::filesystem::path(VRAMLAB_SOURCE_DIR) / "tests/data/oracle";

OracleLog recording() { return read_oracle_log(kFixtures / "async_1.json.gz"); }

TEST(AsyncReplay, IsExactGivenTheAddresses) {
  const ReplayResult given = replay_async_log(recording()).given;
  EXPECT_EQ(given.operations, 3009u);
  EXPECT_EQ(given.addresses_given, 1552u);
  EXPECT_EQ(given.counters_checked, 3009u * 21);
  EXPECT_EQ(given.counter_mismatches, 0u);
  EXPECT_EQ(given.oom_texts_checked, 18u);
  EXPECT_EQ(given.oom_text_mismatches, 0u);
  EXPECT_TRUE(given.exact());
}

// All but the three counters of reserved bytes (current, peak, and current of the small pool).
TEST(AsyncReplay, IsExactInAllThatDoesNotDependOnAddresses) {
  const ReplayResult predicted = replay_async_log(recording()).predicted;
  EXPECT_EQ(predicted.operations, 3009u);
  EXPECT_EQ(predicted.counters_checked, 3009u * 18);
  EXPECT_EQ(predicted.counter_mismatches, 0u);
  EXPECT_EQ(predicted.oom_texts_checked, 18u);
  EXPECT_EQ(predicted.oom_text_mismatches, 0u);
  EXPECT_TRUE(predicted.exact());
  EXPECT_EQ(predicted.approximate, (std::vector<std::string>{"addresses", "reserved_bytes"}));
}

// docs/fidelity.md: "off by 6 % on average and 16 % at worst, and too low at the peak (4,544–4,672 against
// 4,960 MiB)". These are figures of first fit on this recording, no promise for others.
TEST(AsyncReplay, SaysHowFarReservedBytesAreOff) {
  const AsyncReplayResult result = replay_async_log(recording());
  EXPECT_EQ(result.predicted.addresses_checked, 1552u);
  EXPECT_EQ(result.predicted.address_mismatches, 1537u);
  EXPECT_EQ(result.reserved_checked, 3009u);
  EXPECT_EQ(result.reserved_mismatches, 2931u);
  EXPECT_NEAR(result.reserved_mean_error, 0.0566, 0.0001);
  EXPECT_NEAR(result.reserved_worst_error, 0.1622, 0.0001);
  EXPECT_EQ(result.peak_reserved_recorded, 4'960_MiB);
  EXPECT_EQ(result.peak_reserved_predicted, 4'544_MiB);
}

TEST(AsyncReplay, SaysWhereItParts) {
  OracleLog log = recording();
  log.fraction *= 0.9;  // a lower limit: the first request above it fails where the recording has none
  const AsyncReplayResult result = replay_async_log(log);
  ASSERT_TRUE(result.predicted.first_divergence);
  EXPECT_EQ(result.predicted.first_divergence->what, "outcome");
  EXPECT_EQ(result.predicted.first_divergence->recorded, "allocated");
  EXPECT_EQ(result.predicted.operations, 3009u);
  EXPECT_FALSE(result.given.exact());
}

TEST(AsyncReplay, RejectsALogOfTheNativeBackend) {
  EXPECT_THROW(replay_async_log(read_oracle_log(kFixtures / "default_1.json.gz")), InputError);
}

}  // namespace
}  // namespace vramlab
