// What-if equals what was: recorded programs replayed under other settings, against real runs under them.
#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/open.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/recorded_program.hpp"
#include "recordings/snapshot/marks.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using Kind = ClientAction::Kind;

const fs::path kData = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data";
const fs::path kShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data";

double value_of(const std::vector<double>& values, const std::string& name) {
  const auto& names = stat_names();
  return values.at(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
}

double real(const TruthFile& truth, const std::string& name) {
  std::vector<double> values;
  for (const auto& value : truth.marks.back().stats)
    values.push_back(static_cast<double>(value.value_or(-1)));
  return value_of(values, name);
}

double simulated(const ProgramOutcome& outcome, const std::string& name) {
  std::vector<double> values;
  for (const std::int64_t value : stat_values(outcome.stats)) values.push_back(static_cast<double>(value));
  return value_of(values, name);
}

/// A program recorded under one setting and really run under another. `error` is the largest relative error
/// of peak reserved; 0 = every counter compared is equal.
struct WhatIfCase {
  const char* workload;
  const char* setting;
  double error = 0;
  bool card_was_full = false;
};
void PrintTo(const WhatIfCase& c, std::ostream* out) { *out << c.workload << '.' << c.setting; }

class WhatIf : public testing::TestWithParam<WhatIfCase> {};

// In sr_dual.pow4 every request is equal, but which of several fitting blocks some of them got is not: the
// peaks differ by 0.14 % and 0.49 %. In gpt2_var.split128 other processes had left 33.8 GiB, which the
// program filled.
TEST_P(WhatIf, EqualsWhatWas) {
  const WhatIfCase& c = GetParam();
  const std::string truth_name = std::string(c.workload) + "." + c.setting + ".truth.json.gz";
  const bool committed = fs::exists(kData / "whatif" / truth_name);
  const fs::path truth_file = (committed ? kData : kShared) / "whatif" / truth_name;
  if (!fs::exists(truth_file)) GTEST_SKIP() << truth_file << " is not there";
  const fs::path recording =
      (committed ? kData : kShared) / "recorded" / (std::string(c.workload) + ".pickle.gz");
  const TruthFile truth = read_truth_file(truth_file);
  const ClientProgram program = read_client_programs(recording).at(0);
  EXPECT_THAT(program.notes, IsEmpty());

  ReplaySetup setup;
  setup.settings = parse_allocator_settings(truth.conf);
  setup.total = truth.total_memory;
  if (c.card_was_full) {  // as measured at the end of the real run
    setup.total = truth.marks.back().device_free +
                  static_cast<Bytes>(real(truth, "reserved_bytes.all.current")) + setup.context;
  }
  const ProgramOutcome outcome = replay_program(program, setup);

  EXPECT_EQ(outcome.ooms, 0U);
  for (const char* name : {"allocation.all.allocated", "requested_bytes.all.peak",
                           "requested_bytes.all.allocated", "num_alloc_retries", "num_ooms"}) {
    EXPECT_EQ(simulated(outcome, name), real(truth, name)) << name;
  }
  for (const char* name : {"allocated_bytes.all.peak", "reserved_bytes.all.peak"}) {
    EXPECT_LE(std::abs(simulated(outcome, name) - real(truth, name)), c.error * real(truth, name)) << name;
  }
  if (c.error > 0) return;
  for (const char* name :
       {"segment.all.current", "num_device_alloc", "num_device_free", "reserved_bytes.all.current"}) {
    EXPECT_EQ(simulated(outcome, name), real(truth, name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Committed, WhatIf,
                         testing::Values(WhatIfCase{"resnet", "default"}, WhatIfCase{"resnet", "expand"},
                                         WhatIfCase{"resnet", "pow8split128"},
                                         WhatIfCase{"resnet", "split128"}));
INSTANTIATE_TEST_SUITE_P(Others, WhatIf,
                         testing::Values(WhatIfCase{"gpt2_var", "default"}, WhatIfCase{"gpt2_var", "expand"},
                                         WhatIfCase{"gpt2_var", "pow8"},
                                         WhatIfCase{"gpt2_var", "split128", 0.01, true},
                                         WhatIfCase{"sr_dual", "default"}, WhatIfCase{"sr_dual", "expand"},
                                         WhatIfCase{"sr_dual", "pow4", 0.01},
                                         WhatIfCase{"sr_dual", "split64"}));

/// A program recorded on an H200 and really run under other settings: its peaks, and how far the replay is
/// above them.
struct H200Case {
  const char* program;
  const char* conf;
  Bytes allocated;
  Bytes reserved;
  std::int64_t more_allocated = 0;
  std::int64_t more_reserved = 0;
};
void PrintTo(const H200Case& c, std::ostream* out) { *out << c.program << ' ' << c.conf; }

ClientProgram h200_program(const char* name) {
  const fs::path file = kShared / "programs-h200" / (std::string(name) + ".pickle.gz");
  return fs::exists(file) ? read_client_programs(file).at(0) : ClientProgram{};
}

class WhatIfOnH200 : public testing::TestWithParam<H200Case> {};

// Peak reserved is off by 0.14 % in llama with max_split_size_mb:64, by 1.55 % with 128, and exact elsewhere.
TEST_P(WhatIfOnH200, IsOffByThatMuch) {
  const H200Case& c = GetParam();
  const ClientProgram program = h200_program(c.program);
  if (program.actions.empty()) GTEST_SKIP() << c.program << " is not there";
  ReplaySetup setup;
  setup.settings = parse_allocator_settings(c.conf);
  const ProgramOutcome outcome = replay_program(program, setup);
  EXPECT_EQ(static_cast<std::int64_t>(outcome.highest_allocated - c.allocated), c.more_allocated);
  EXPECT_EQ(static_cast<std::int64_t>(outcome.highest_reserved - c.reserved), c.more_reserved);
  EXPECT_EQ(outcome.stats.num_alloc_retries, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, WhatIfOnH200,
    testing::Values(H200Case{"llama", "", 4'355'229'696, 5'104'467'968},
                    H200Case{"llama", "expandable_segments:True", 4'308'043'776, 4'842'323'968},
                    H200Case{"llama", "roundup_power2_divisions:8", 4'463'758'848, 5'131'730'944, 2_MiB, 0},
                    H200Case{"llama", "max_split_size_mb:64", 4'357'851'136, 9'133'096'960, 128_KiB, 12_MiB},
                    H200Case{"llama", "max_split_size_mb:128", 4'356'802'560, 6'232'735'744, -2'097'152,
                             92_MiB},
                    H200Case{"vit", "", 1'415'987'712, 1'612'709'888},
                    H200Case{"vit", "expandable_segments:True", 1'397'768'704, 1'539'309'568},
                    H200Case{"vit", "roundup_power2_divisions:8", 1'483'514'368, 1'642'070'016},
                    H200Case{"vit", "max_split_size_mb:64", 1'415'987'712, 1'671'430'144},
                    H200Case{"vit", "max_split_size_mb:128", 1'415'987'712, 1'612'709'888}));

/// Segments at addresses that a seed scatters over the address range.
class ScatteredSegments : public SegmentAdaptor {
 public:
  ScatteredSegments(SegmentSource& source, std::uint64_t seed) : SegmentAdaptor(source), seed_(seed) {}

  std::optional<Address> reserve(Bytes) override {
    std::uint64_t x = seed_ * 1'000'003 + ++segments_ + 0x9E37'79B9'7F4A'7C15;  // splitmix64
    x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9;
    x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EB;
    return ((x ^ (x >> 31)) >> 40) << 40;
  }
  void release(Address) override {}

 private:
  std::uint64_t seed_;
  std::uint64_t segments_ = 0;
};

// Why llama with max_split_size_mb:128 is not met: the same requests in the same order, under the same rules,
// reserve more or less by where the driver puts segments, because among cached blocks of equal size the
// lowest address is taken (R2.2). The real run's figures are among the outcomes.
TEST(WhatIfOnH200, AddressesAloneDecideOverLlamaWithSplitsUpTo128) {
  const ClientProgram program = h200_program("llama");
  if (program.actions.empty()) GTEST_SKIP() << "llama is not there";
  SimulatedCard card(kNeverFull);
  SimSegments segments(card);
  ReplaySetup setup;
  setup.settings = parse_allocator_settings("max_split_size_mb:128");
  const auto peaks_at = [&](std::uint64_t seed) {
    ScatteredSegments scattered(segments, seed);
    const ProgramOutcome outcome = replay_program_on(scattered, program, setup).outcome;
    return std::pair(outcome.highest_allocated, outcome.highest_reserved);
  };
  EXPECT_EQ(peaks_at(3262), std::pair(Bytes{4'356'802'560}, Bytes{6'232'735'744}));
  EXPECT_EQ(peaks_at(437), std::pair(Bytes{4'355'229'696}, Bytes{6'232'735'744}));
}

// The client actions of a recording: counts of spec 16.3, and nothing of what the allocator did.
TEST(SnapshotProgram, HoldsTheClientActionsAlone) {
  const ClientProgram program = read_client_programs(kData / "recorded/graphed.pickle.gz").at(0);
  const auto count = [&](Kind kind) {
    return std::count_if(program.actions.begin(), program.actions.end(),
                         [kind](const ClientAction& action) { return action.kind == kind; });
  };
  EXPECT_EQ(count(Kind::alloc), 141);
  EXPECT_EQ(program.blocks, 141U);
  EXPECT_EQ(count(Kind::empty_cache), 2);
  EXPECT_EQ(count(Kind::capture_begin), 1);
  EXPECT_EQ(count(Kind::capture_end), 1);
  EXPECT_EQ(count(Kind::mark), 7);
}

// R11.12: what was in use when recording began is still there at the end, where the file says so itself.
TEST(SnapshotProgram, BeginsWithWhatWasInUse) {
  const fs::path file = kData / "recorded/lstm_late.pickle.gz";
  const ClientProgram program = read_client_programs(file).at(0);
  EXPECT_EQ(program.initial_actions, 46U);
  ReplaySetup setup;
  setup.settings = program.settings;
  const ProgramOutcome outcome = replay_program(program, setup);
  Bytes in_use = 0;
  for (const SnapshotSegment& segment : read_torch_snapshot(file).segments) in_use += segment.requested_size;
  EXPECT_EQ(static_cast<Bytes>(outcome.stats.requested_bytes.all().current), in_use);
}

// The recorded peak of K5-03; blocks before the recording included.
TEST(SnapshotProgram, CountsWhatWasInUseAtThePeak) {
  const fs::path file = kShared / "public-snapshots/gpt-medium-training-128.pickle.gz";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  const ClientProgram program = read_client_programs(file).at(0);
  ReplaySetup setup;
  setup.settings = program.settings;
  const ProgramOutcome outcome = replay_program(program, setup);
  EXPECT_NEAR(static_cast<double>(outcome.stats.allocated_bytes.all().peak) / 1_MiB, 6701.094, 0.01 * 6701);
}

// twostream ends with two blocks that still wait for the other stream (R11.2).
TEST(SnapshotProgram, KeepsThePlaceAtWhichADeferredFreeCompleted) {
  const ClientProgram program = read_client_programs(kData / "recorded/twostream.pickle.gz").at(0);
  ReplaySetup setup;
  setup.settings = program.settings;
  const ProgramOutcome outcome = replay_program(program, setup);
  const std::int64_t waiting = outcome.stats.active.all().current - outcome.stats.allocation.all().current;
  EXPECT_EQ(waiting, 2);
}

// The truth files say 4,096 and 9,000 MiB; without them the largest limit that explains every failure is
// used.
TEST(SnapshotProgram, ReadsALimitOffTheFailures) {
  for (const auto& [name, limit] :
       {std::pair("sr_cap.cap4g", 4096_MiB), std::pair("gpt2_cap.cap", 9000_MiB)}) {
    const fs::path file = kShared / "recorded" / (std::string(name) + ".pickle.gz");
    if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
    const ClientProgram program = program_of(read_torch_snapshot(file), 0, {});
    ASSERT_TRUE(program.limit) << name;
    EXPECT_TRUE(program.limit_inferred);
    EXPECT_GE(*program.limit, limit - 1) << name;
    EXPECT_LT(*program.limit, limit + 128_MiB) << name;
    EXPECT_FALSE(program.room) << name;
    EXPECT_THAT(program.notes, IsEmpty()) << name;
  }
}

TEST(SnapshotProgram, SaysWhatCannotBeRead) {
  EXPECT_THROW(read_client_programs(kData / "superres-grid.json"), InputError);
}

}  // namespace
}  // namespace vramlab
