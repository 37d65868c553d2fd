// Who holds the memory, by category, over the history and at the peak, and what holds what is idle.
#include "lab/whatif/holders.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/whatif/view.hpp"
#include "lab/whatif/whatif.hpp"
#include "recordings/open.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kRecorded = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";

WhatIfAnswer answer(const ClientProgram& program, std::vector<std::string> confs, std::string at = "") {
  WhatIfQuestion question;
  question.confs = std::move(confs);
  question.peaks = true;
  question.at = std::move(at);
  return answer_whatif({program}, question);
}

ClientProgram script(const std::string& lines) {
  return parse_allocation_script("op,id,bytes,stream,pool,text\n" + lines, "script");
}

// A late block of 4 MiB is cut from the cached 100 MiB, so that the next 100 MiB need a segment of their own;
// 30 MiB of another stream are cached, and nothing is in them.
const char* const kPinned =
    "alloc,x,30MiB,1\nfree,x\nalloc,first,100MiB\nfree,first\nmark,,,,,begun\nalloc,late,4MiB\n"
    "alloc,second,100MiB\nmark,,,,,done\n";

TEST(HoldersTest, IdleMemoryIsHeldByTheBlockInItsSegment) {
  const Holders holders = answer(script(kPinned), {"", "expandable_segments:True"}).holders.at(0);
  EXPECT_EQ(holders.reserved, 230_MiB);
  EXPECT_EQ(holders.idle, 126_MiB);
  ASSERT_EQ(holders.pins.size(), 2U);
  EXPECT_EQ(holders.pins[0].pin.holder, Pin::Holder::blocks);
  EXPECT_EQ(holders.pins[0].pin.idle, 96_MiB);
  EXPECT_EQ(holders.pins[0].pin.size, 4_MiB);
  EXPECT_THAT(holders.pins[0].pin.blocks, ElementsAre(2U));
  EXPECT_EQ(holders.pins[0].since, "done");
  EXPECT_THAT(holders.pins[0].freed_by, ElementsAre("expandable_segments:True"));
  EXPECT_EQ(holders.pins[1].pin.holder, Pin::Holder::nothing);
  EXPECT_EQ(holders.pins[1].pin.idle, 30_MiB);
}

// max_split_size keeps the late block out of the cached 100 MiB, but it holds 16 MiB of a segment of its own.
TEST(HoldersTest, ASettingThatLeavesATenthDoesNotFree) {
  const Holders holders = answer(script(kPinned), {"", "max_split_size_mb:64"}).holders.at(0);
  EXPECT_THAT(holders.pins[0].freed_by, IsEmpty());
}

// R4.9: an expandable segment gives back whole pages of 20 MiB. 100 MiB are mapped; a block of 2 MiB stays at
// 50 MiB, and the four pages beside its own are free.
TEST(HoldersTest, ABlockInAnExpandableSegmentHoldsItsPage) {
  const ClientProgram program =
      script("alloc,a,50MiB\nalloc,b,2MiB\nalloc,c,48MiB\nfree,a\nfree,c\nmark,,,,,now\n");
  const Holders holders = answer(program, {"expandable_segments:True"}, "now").holders.at(0);
  EXPECT_EQ(holders.idle, 98_MiB);
  ASSERT_EQ(holders.pins.size(), 2U);
  EXPECT_EQ(holders.pins[0].pin.idle, 18_MiB);
  EXPECT_EQ(holders.pins[0].pin.size, 2_MiB);
  EXPECT_EQ(holders.pins[1].pin.idle, 80_MiB);
  EXPECT_EQ(holders.pins[1].pin.holder, Pin::Holder::nothing);
}

TEST(HoldersTest, AnotherMomentIsNamedByItsMark) {
  const ClientProgram program = script(kPinned);
  const Holders begun = answer(program, {""}, "begun").holders.at(0);
  EXPECT_EQ(begun.allocated, 0U);
  EXPECT_EQ(begun.idle, 130_MiB);
  EXPECT_EQ(begun.reserved, 130_MiB);
  const Holders peak = answer(program, {""}, "peak").holders.at(0);
  EXPECT_EQ(peak.allocated, 104_MiB);
  const auto refusal = [&](const std::string& at) -> std::string {
    try {
      moment_of(program, at);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(refusal("dome"), HasSubstr("\"dome\" is no mark of script. It has \"begun\", \"done\""));
  EXPECT_THAT(refusal("failure"), HasSubstr("no request failed in script"));
  EXPECT_THAT(refusal("done#2"), HasSubstr("is no mark"));
  const ClientProgram twice = script("mark,,,,,step\nalloc,a,1MiB\nmark,,,,,step\n");
  EXPECT_EQ(moment_of(twice, "step"), 0U);
  EXPECT_EQ(moment_of(twice, "step#2"), 2U);
  EXPECT_EQ(answer(twice, {""}, "step").holders.at(0).moment, "the end of step#1");
  EXPECT_EQ(answer(twice, {""}, "step#2").holders.at(0).moment, "the end of step#2");
}

// What does not fit is shown as it would be if it did, and that is said.
TEST(HoldersTest, OfWhatDoesNotFitAreThoseWithoutALimit) {
  WhatIfQuestion question;
  question.confs = {""};
  question.peaks = true;
  question.limits = {150_MiB};
  const Holders holders = answer_whatif({script(kPinned)}, question).holders.at(0);
  EXPECT_EQ(holders.allocated, 104_MiB);
  EXPECT_EQ(holders.moment, "the peak (in done), without any limit");
  EXPECT_EQ(holders.reserved, 230_MiB);
}

TEST(HoldersTest, OfNothingSayThat) {
  const WhatIfAnswer answered = answer(script("mark,,,,,nothing\n"), {""});
  EXPECT_EQ(answered.holders.at(0).blocks, 0U);
  EXPECT_THAT(answered.holders.at(0).pins, IsEmpty());
}

class HoldersOfRecordings : public testing::TestWithParam<const char*> {};

// The allocator's own counters at every mark of a recording, to the byte.
TEST_P(HoldersOfRecordings, AddUpAtEveryMark) {
  const ClientProgram program = read_client_programs(kRecorded / GetParam(), {}).at(0);
  for (const std::string conf : {"", "expandable_segments:True"}) {
    const WhatIfRow plain = answer(program, {conf}).rows.at(0);
    std::size_t mark = 0;
    for (std::size_t i = 0; i < program.actions.size(); ++i) {
      if (program.actions[i].kind != ClientAction::Kind::mark) continue;
      const MemoryStats& stats = plain.outcome.marks.at(mark++).stats;
      const std::string name = mark_after(program, i);
      if (moment_of(program, name) != i) continue;  // of several of a name the first
      const Holders holders = answer(program, {conf}, name).holders.at(0);
      EXPECT_EQ(static_cast<std::int64_t>(holders.allocated), stats.allocated_bytes.all().current) << name;
      Bytes sum = 0;
      for (const CategoryShare& share : holders.categories) sum += share.bytes;
      EXPECT_EQ(sum, holders.allocated) << name;
      Bytes idle = 0;
      for (const HeldIdle& held : holders.pins) idle += held.pin.idle;
      EXPECT_EQ(static_cast<std::int64_t>(idle),
                stats.reserved_bytes.all().current - stats.active_bytes.all().current)
          << name;
    }
  }
}

TEST_P(HoldersOfRecordings, KeepTheirPeaksOnTheTimeLine) {
  const ClientProgram program = read_client_programs(kRecorded / GetParam(), {}).at(0);
  const WhatIfAnswer answered = answer(program, {""});
  const CategoryTimeline& timeline = answered.holders.at(0).timeline;
  const ProgramOutcome& outcome = answered.rows.at(0).outcome;
  EXPECT_LE(timeline.actions.size(), 2000U);
  EXPECT_EQ(std::ranges::max(timeline.reserved), outcome.highest_reserved);
  Bytes most = 0;
  for (std::size_t i = 0; i < timeline.actions.size(); ++i) {
    Bytes sum = 0;
    for (const auto& category : timeline.allocated) sum += category[i];
    EXPECT_LE(sum, timeline.reserved[i]);
    most = std::max(most, sum);
  }
  EXPECT_EQ(most, outcome.highest_allocated);
}

INSTANTIATE_TEST_SUITE_P(Small, HoldersOfRecordings,
                         testing::Values("bert.pickle.gz", "graphed.pickle.gz", "lstm.pickle.gz",
                                         "resnet.pickle.gz", "lstm_late.pickle.gz", "twostream.pickle.gz"));

// What nothing holds is given back by empty_cache(); it is none of the "others".
TEST(HoldersTest, WhatNothingHoldsHasARowOfItsOwn) {
  Holders holders;
  for (const Bytes idle : {5_MiB, 3_MiB, 2_MiB}) {
    holders.pins.push_back({.pin = {.holder = Pin::Holder::blocks, .idle = idle, .size = 1_MiB}});
  }
  holders.pins.push_back({.pin = {.holder = Pin::Holder::nothing, .idle = 7_MiB}});
  const Table table = pins_table(holders, 1);
  ASSERT_EQ(table.rows().size(), 3U);
  EXPECT_THAT(table.rows()[0], ElementsAre("5.0 MiB", "1.0 MiB", "a block of the allocator's own", "-", "-"));
  EXPECT_THAT(table.rows()[1], ElementsAre("5.0 MiB", "-", "2 others", "-", "-"));
  EXPECT_THAT(table.rows()[2], ElementsAre("7.0 MiB", "-", "nothing: empty_cache() gives it back", "-", "-"));
}

TEST(HoldersTest, AreWrittenAsJson) {
  const ClientProgram program = script(kPinned);
  const WhatIfAnswer answered = answer(program, {"", "expandable_segments:True"});
  const Json json = whatif_json({program}, answered);
  EXPECT_EQ(json["pins"][0]["bytes_held"], 96_MiB);
  EXPECT_EQ(json["pins"][0]["size"], 4_MiB);
  EXPECT_TRUE(json["pins"][0]["stack"].is_null());
  EXPECT_EQ(json["pins"][0]["since"], "done");
  EXPECT_EQ(json["pins"][0]["freed_by"], Json::array({"expandable_segments:True"}));
  EXPECT_EQ(json["pins"][1]["freed_by"], Json::array({"empty_cache()"}));
  EXPECT_EQ(json["pins_at"]["idle_bytes"], 126_MiB);
  EXPECT_EQ(json["categories_at"]["allocated_bytes"], 104_MiB);
  EXPECT_EQ(json["timeline"]["marks"].size(), 2U);
}

}  // namespace
}  // namespace vramlab
