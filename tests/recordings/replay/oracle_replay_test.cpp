// The acceptance test of the allocator: PyTorch's own answers to tens of thousands of operations.
#include "recordings/replay/oracle_replay.hpp"

#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

const fs::path kOracleFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/oracle";
const fs::path kAllLogs = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data/oracle";

/// Figures of a recording as an exact model must meet them.
struct Recording {
  const char* name;
  std::uint64_t operations;
  std::uint64_t addresses_predicted;
  std::uint64_t ooms;
};

void PrintTo(const Recording& recording, std::ostream* out) { *out << recording.name; }

// Every oracle log; docs/fidelity.md lists them.
constexpr Recording kCommitted[] = {{"default_1", 3011, 1454, 34},
                                    {"combo_1", 3010, 1102, 64},
                                    {"expand_1", 3010, 1535, 42},
                                    {"split32_1", 3010, 1231, 34},
                                    {"poolsexpand_1", 2082, 947, 145}};
constexpr Recording kOthers[] = {
    {"big_1", 3011, 1035, 237},     {"bigcombo_1", 3014, 335, 200}, {"bigexpand_1", 3011, 1348, 246},
    {"bigsplit_1", 3011, 668, 232}, {"device_1", 3013, 975, 331},   {"expandgc_1", 3010, 1535, 42},
    {"expcombo_1", 3011, 1559, 29}, {"gc06_1", 3011, 1374, 65},     {"largeseg_1", 3011, 1466, 17},
    {"pools_1", 1185, 546, 25},     {"pow2list_1", 3010, 1445, 36}, {"pow2x4_1", 3009, 1446, 29},
    {"small_1", 3014, 1498, 0}};

fs::path file_of(const fs::path& folder, const std::string& name) { return folder / (name + ".json.gz"); }

void expect_exact(const fs::path& file, const Recording& recording) {
  const OracleLog log = read_oracle_log(file);
  OracleReplay replay(log);
  const ReplayResult& result = replay.run();
  EXPECT_EQ(result.operations, recording.operations);
  EXPECT_EQ(result.addresses_checked, recording.addresses_predicted);
  EXPECT_EQ(result.address_mismatches, 0u);
  EXPECT_EQ(result.counters_checked, recording.operations * log.keys.size());
  EXPECT_EQ(result.counter_mismatches, 0u);
  EXPECT_EQ(result.oom_texts_checked, recording.ooms);
  EXPECT_EQ(result.oom_text_mismatches, 0u);
  EXPECT_EQ(result.segment_events_matched, result.segment_events_recorded);
  EXPECT_TRUE(result.exact());
  if (const auto& first = result.first_divergence) {
    ADD_FAILURE() << "operation " << first->operation << " (" << first->kind << "): " << first->what
                  << " recorded " << first->recorded << ", simulated " << first->simulated;
  }
  for (const std::string& broken : validate(replay.allocator())) {
    // Placeholders for ranges may lie where the recording has segments.
    if (!broken.starts_with("segments do not overlap")) ADD_FAILURE() << broken;
  }
}

class CommittedRecording : public testing::TestWithParam<Recording> {};

TEST_P(CommittedRecording, IsReproducedExactly) {
  expect_exact(file_of(kOracleFixtures, GetParam().name), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Oracle, CommittedRecording, testing::ValuesIn(kCommitted),
                         [](const auto& test) { return std::string(test.param.name); });

class FurtherRecording : public testing::TestWithParam<Recording> {};

TEST_P(FurtherRecording, IsReproducedExactly) {
  const fs::path file = file_of(kAllLogs, GetParam().name);
  if (!fs::exists(file)) GTEST_SKIP() << "the recording " << file << " is not here";
  expect_exact(file, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Oracle, FurtherRecording, testing::ValuesIn(kOthers),
                         [](const auto& test) { return std::string(test.param.name); });

// Given the pointers, every counter of cudaMallocAsync and every OOM is exact.
TEST(OracleReplay, ReproducesCudaMallocAsyncButForItsAddresses) {
  const fs::path file = file_of(kAllLogs, "async_1");
  if (!fs::exists(file)) GTEST_SKIP() << "the recording " << file << " is not here";
  const ReplayResult result = replay_oracle_log(read_oracle_log(file));
  EXPECT_EQ(result.operations, 3009u);
  EXPECT_EQ(result.addresses_checked, 0u);
  EXPECT_EQ(result.addresses_given, 1552u);
  EXPECT_EQ(result.counters_checked, 3009u * 21);
  EXPECT_EQ(result.counter_mismatches, 0u);
  EXPECT_EQ(result.oom_texts_checked, 18u);
  EXPECT_EQ(result.oom_text_mismatches, 0u);
  EXPECT_EQ(result.approximate, std::vector<std::string>{"addresses"});
}

// pools_1 ends where the next request, 50,319,937 bytes in the default pools, made PyTorch hand a piece of a
// segment to cudaFree: CUDA "invalid argument", no OOM (R4.7).
TEST(OracleReplay, PredictsTheErrorThatStoppedARecording) {
  const fs::path file = file_of(kAllLogs, "pools_1");
  if (!fs::exists(file)) GTEST_SKIP() << "the recording " << file << " is not here";
  const OracleLog log = read_oracle_log(file);
  OracleReplay replay(log);
  replay.run();
  EXPECT_THROW(replay.allocator().allocate(50'319'937, kDefaultStream), AllocatorFault);
}

TEST(OracleReplay, SaysWhereItParts) {
  OracleLog log = read_oracle_log(file_of(kOracleFixtures, "default_1"));
  log.operations[100].counters[4] += 512;
  const ReplayResult result = replay_oracle_log(log);
  EXPECT_EQ(result.counter_mismatches, 1u);
  ASSERT_TRUE(result.first_divergence);
  EXPECT_EQ(result.first_divergence->operation, 100u);
  EXPECT_EQ(result.first_divergence->what, log.keys[4]);
}

TEST(OracleReplay, RefusesLogsThatContradictThemselves) {
  const auto replay_with = [](const char* kind, std::int64_t tag, const char* conf) {
    OracleLog log;
    log.total_memory = 1_GiB;
    log.conf = conf;
    OracleOperation op;
    op.kind = kind;
    op.tag = tag;
    op.bytes = 1000;
    log.operations.push_back(op);
    return replay_oracle_log(log);
  };
  EXPECT_THROW(replay_with("alloc", 3, ""), InputError);
  EXPECT_THROW(replay_with("alloc", -7, ""), InputError);
  EXPECT_THROW(replay_with("pool_alloc", 0, ""), InputError);
  EXPECT_THROW(replay_with("pool_del", 0, ""), InputError);
  EXPECT_THROW(replay_with("graph_alloc", 1000, ""), InputError);
  EXPECT_THROW(replay_with("capture_end", 1000, ""), InputError);
  EXPECT_THROW(replay_with("settings", 0, "backend:cudaMallocAsync"), InputError);
}

// The rules are not guessed: an allocator with other settings parts from the recording soon, and its replay
// goes on to the end all the same.
TEST(OracleReplay, GoesAstrayUnderOtherSettings) {
  for (const char* conf :
       {"max_split_size_mb:32", "expandable_segments:True", "roundup_power2_divisions:4"}) {
    OracleLog log = read_oracle_log(file_of(kOracleFixtures, "default_1"));
    log.conf = conf;
    const ReplayResult result = replay_oracle_log(log);
    EXPECT_GT(result.address_mismatches + result.counter_mismatches, 100u) << conf;
    EXPECT_EQ(result.operations, 3011u);
  }
}

}  // namespace
}  // namespace vramlab
