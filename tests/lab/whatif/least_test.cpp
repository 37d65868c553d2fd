// The least memory of recorded programs: scripts worked out by hand, the recordings of the project, and those
// beside it where they are there.
#include "lab/whatif/least.hpp"

#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/whatif/view.hpp"
#include "lab/whatif/whatif.hpp"
#include "plan/validator.hpp"
#include "recordings/open.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const fs::path kOwnRecordings = fs::path{VRAMLAB_SOURCE_DIR} / "tests/data/recorded";
const fs::path kSharedRecordings = fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data";

ClientProgram least_script(const std::string& lines) {
  return parse_allocation_script("op,id,bytes,stream,pool,text\n" + lines, "script.csv");
}

// Two blocks of 300 MiB make room for one of 500: PyTorch keeps two segments that are each too small.
const char* const kTwoForOne = "alloc,a,300MiB\nalloc,b,300MiB\nfree,a\nfree,b\nalloc,c,500MiB\nfree,c\n";

TEST(LeastMemory, IsWhatAPlanOfAllAddressesNeeds) {
  const LeastMemory least = least_memory(least_script(kTwoForOne));

  EXPECT_EQ(least.blocks, 3U);
  EXPECT_EQ(least.plan.planned, 600_MiB);
  EXPECT_TRUE(least.plan.is_least());
  EXPECT_FALSE(least.lower_bound);
  EXPECT_TRUE(least.supposed.empty());
}

TEST(LeastMemory, StandsBesideTheRowsOfAWhatIfAnswer) {
  const std::vector<ClientProgram> programs{least_script(kTwoForOne)};
  WhatIfQuestion question;
  question.confs = {"", "expandable_segments:True"};
  question.least = true;
  question.peaks = true;

  WhatIfAnswer answer = answer_whatif(programs, question);

  ASSERT_EQ(answer.least.size(), 1U);
  EXPECT_EQ(answer.rows[0].outcome.highest_reserved, 1100_MiB);
  EXPECT_EQ(answer.rows[1].outcome.highest_reserved, 600_MiB);
  EXPECT_EQ(
      left_on_the_table(answer),
      "expandable_segments:True leaves 0 B (0.0 %) on the table: a plan of all addresses needs 600.0 MiB, "
      "the least there is.");
  const Json json = whatif_json(programs, answer);
  EXPECT_EQ(json["planned"]["planned_bytes"], 600_MiB);
  EXPECT_EQ(json["planned"]["bound_bytes"], 600_MiB);
  EXPECT_EQ(json["planned"]["certified"], true);
  // Of a program that is known in part, or without what failed, the least is not known.
  answer.least[0].failed = 2;
  EXPECT_THAT(left_on_the_table(answer),
              testing::EndsWith("600.0 MiB, the least there is without what failed."));
  answer.least[0].lower_bound = true;
  EXPECT_THAT(left_on_the_table(answer),
              testing::StrEq("Of what the file tells, a plan of all addresses needs at least 600.0 MiB."));
}

// Planning takes longer than all replays there; docs/whatif.md says from where on.
TEST(LeastMemory, IsLeftOutOfAnAnswerOnVeryManyBlocks) {
  const auto answer_of = [](std::size_t blocks) {
    std::string lines;
    for (std::size_t i = 0; i < blocks; ++i) lines += fmt::format("alloc,{0},512\nfree,{0},\n", i);
    const std::vector<ClientProgram> programs{least_script(lines)};
    const WhatIfAnswer answer = answer_whatif(programs, {.confs = {""}, .least = true});
    EXPECT_EQ(left_on_the_table(answer).empty(), answer.least.empty());
    return whatif_json(programs, answer);
  };

  const Json many = answer_of(300'001);

  EXPECT_FALSE(many.contains("planned"));
  EXPECT_EQ(many["rows"][0]["peak_reserved_bytes"], 2_MiB);
  EXPECT_EQ(many["notes"].back(), "No plan is made of so many blocks here: vramlab plan makes one.");
  EXPECT_EQ(answer_of(300'000)["planned"]["planned_bytes"], 512);
}

TEST(LeastMemory, IsLeftOutWhereItIsNotAskedFor) {
  WhatIfQuestion question;
  question.confs = {""};
  const WhatIfAnswer answer = answer_whatif({least_script(kTwoForOne)}, question);
  EXPECT_TRUE(answer.least.empty());
  EXPECT_EQ(left_on_the_table(answer), "");
}

TEST(LeastMemory, SaysWhatItSupposes) {
  EXPECT_THAT(least_memory(least_script("alloc,a,512,0\nalloc,b,512,1\n")).supposed,
              ElementsAre("memory goes from one to the other of 2 streams as soon as it is free."));
  EXPECT_THAT(least_memory(least_script("capture_begin,,,3,g\nalloc,b,512,3\ncapture_end,,,,g\n")).supposed,
              ElementsAre("1 block of private pools and captured graphs may give its memory to any other."));
}

// What the history does not tell: the first blocks are those in use when recording began.
TEST(LeastMemory, IsALowerBoundWhereRecordingBeganLate) {
  ClientProgram program = least_script("alloc,a,512\nalloc,b,512\n");
  program.initial_actions = 1;
  const LeastMemory least = least_memory(program);
  EXPECT_TRUE(least.lower_bound);
  EXPECT_THAT(least.supposed, Contains(StartsWith("1 block in use when recording began is counted")));
}

// A bound of half a percent above the load; the allocator of the recording reserved more.
void expect_planned(const fs::path& file) {
  SCOPED_TRACE(file);
  for (const ClientProgram& program : read_client_programs(file)) {
    const LeastMemory least = least_memory(program);
    EXPECT_LE(least.plan.gap(), 0.005);
    const PlanCheck check = check_plan(buffers_of(lifetimes_of(program)), least.plan.offsets);
    EXPECT_TRUE(check.sound());
    EXPECT_EQ(check.top, least.plan.planned);
    EXPECT_EQ(check.load, least.plan.load);
    const ProgramOutcome outcome = replay_program(program, {.settings = program.settings});
    EXPECT_LE(least.plan.planned, outcome.highest_reserved);
  }
}

TEST(LeastMemory, OfTheRecordingsOfTheProjectIsKnownToHalfAPercent) {
  for (const char* name : {"bert", "resnet", "lstm", "twostream", "graphed"}) {
    const fs::path file = kOwnRecordings / (std::string(name) + ".pickle.gz");
    if (fs::exists(file)) expect_planned(file);
  }
}

TEST(LeastMemory, OfTheRecordingsBesideItIsKnownToHalfAPercent) {
  if (!fs::exists(kSharedRecordings)) GTEST_SKIP() << "no " << kSharedRecordings;
  std::set<fs::path> files;
  for (const char* folder : {"recorded", "programs-h200", "judge", "public-snapshots"}) {
    for (const auto& entry : fs::directory_iterator(kSharedRecordings / folder)) {
      if (entry.path().native().ends_with(".pickle.gz")) files.insert(entry.path());
    }
  }
  EXPECT_GE(files.size(), 40U);
  for (const fs::path& file : files) expect_planned(file);
}

// gpt2_var reserved 14,932 MiB on the card (its truth file); 12,892,169,216 bytes are alive at once.
TEST(LeastMemory, OfAFragmentedRunIsWhatIsAliveAtOnce) {
  const fs::path file = kSharedRecordings / "recorded/gpt2_var.pickle.gz";
  if (!fs::exists(file)) GTEST_SKIP() << "no " << file;
  const LeastMemory least = least_memory(read_client_programs(file).front());
  EXPECT_EQ(least.blocks, 11'855U);
  EXPECT_EQ(least.plan.load, 12'892'169'216U);
  EXPECT_EQ(least.plan.planned, 12'892'169'216U);
}

}  // namespace
}  // namespace vramlab
