// What frees idle memory beside settings: a pool of its own for what holds it, or another order.
#include "recordings/lifetimes/remedies.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/whatif/view.hpp"
#include "lab/whatif/whatif.hpp"
#include "recordings/open.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

ClientProgram fragment(const std::string& lines) {
  return parse_allocation_script("op,id,bytes,stream,pool,text\n" + lines, "script");
}

Holders holders_with(const ClientProgram& program, const std::string& at = "") {
  WhatIfQuestion question;
  question.confs = {""};
  question.peaks = true;
  question.at = at;
  return answer_whatif({program}, question).holders.at(0);
}

std::vector<Remedy> freeing(const HeldIdle& pin) {
  std::vector<Remedy> ways;
  for (const TriedRemedy& way : pin.tried)
    if (way.frees) ways.push_back(way.remedy);
  return ways;
}

// R1.6, R1.7: 12 MiB have a segment of exactly their size, if no cached block is there. The late block is cut
// from the cached 100 MiB, and the second 100 MiB need another segment.
const char* const kLate =
    "mark,,,,,warm\nalloc,first,100MiB\nfree,first\nalloc,late,12MiB\nalloc,second,100MiB\nmark,,,,,done\n";

// In a pool of its own, or made before the first 100 MiB, it leaves them whole.
TEST(RemediesTest, APoolOrAnEarlierPlaceLeavesTheSegmentWhole) {
  const Holders holders = holders_with(fragment(kLate));
  EXPECT_EQ(holders.reserved, 200_MiB);
  ASSERT_THAT(holders.pins, SizeIs(1));
  EXPECT_EQ(holders.pins[0].pin.idle, 88_MiB);
  EXPECT_THAT(freeing(holders.pins[0]), ElementsAre(Remedy::pool, Remedy::earlier));
  ASSERT_THAT(holders.pins[0].tried, SizeIs(2));  // it is never freed
  for (const TriedRemedy& way : holders.pins[0].tried) {
    EXPECT_EQ(way.held, 0U);
    EXPECT_EQ(way.reserved, 112_MiB);
  }
}

// A pool for 4 MiB takes a segment of 20 MiB, of which it holds 16: more than a tenth of the 96 it held.
TEST(RemediesTest, WhatStillHoldsATenthDoesNotCount) {
  std::string lines = kLate;
  lines.replace(lines.find("12MiB"), 5, "4MiB");
  const HeldIdle pin = holders_with(fragment(lines)).pins.at(0);
  EXPECT_EQ(pin.pin.idle, 96_MiB);
  EXPECT_THAT(freeing(pin), IsEmpty());
  EXPECT_EQ(pin.tried.at(0).held, 16_MiB);
  EXPECT_EQ(pin.tried.at(0).reserved, 120_MiB);
}

// The old block is freed at the end of the second stretch; at its beginning the 100 MiB would be whole again.
TEST(RemediesTest, FreedEarlierItIsNotInTheWay) {
  const Holders holders =
      holders_with(fragment("alloc,first,100MiB\nfree,first\nalloc,old,12MiB\nmark,,,,,one\n"
                            "alloc,second,100MiB\nfree,old\nmark,,,,,two\n"));
  EXPECT_EQ(holders.pins.at(0).pin.idle, 88_MiB);
  EXPECT_THAT(freeing(holders.pins[0]), ElementsAre(Remedy::pool, Remedy::earlier, Remedy::freed_earlier));
  EXPECT_EQ(holders.pins[0].tried.at(2).reserved, 100_MiB);
}

// Apart from the cached 100 MiB it would need 12 MiB more at the peak, which lies elsewhere.
TEST(RemediesTest, AHigherPeakDoesNotCount) {
  const Holders holders =
      holders_with(fragment("mark,,,,,warm\nalloc,first,100MiB\nfree,first\nalloc,late,12MiB\nmark,,,,,idle\n"
                            "alloc,rest,88MiB\nmark,,,,,full\n"),
                   "idle");
  EXPECT_EQ(holders.pins.at(0).pin.idle, 88_MiB);
  EXPECT_THAT(freeing(holders.pins[0]), IsEmpty());
  EXPECT_EQ(holders.pins[0].tried.at(0).reserved, 112_MiB);
}

// The same blocks are asked for and freed, and the moment is that of the same action.
TEST(RemediesTest, AnotherOrderIsTheSameProgram) {
  const ClientProgram program = fragment(kLate);
  const std::vector<Lifetime> lifetimes = lifetimes_of(program);
  const auto earlier = changed(program, lifetimes, Remedy::earlier, {false, true, false}, 4);
  ASSERT_TRUE(earlier);
  EXPECT_THAT(earlier->original, ElementsAre(1U, 0U, 2U));
  EXPECT_EQ(earlier->action, 4U);
  const std::vector<Bytes> bytes{0, 12_MiB, 100_MiB, 0, 100_MiB, 0};
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(earlier->program.actions.at(i).bytes, bytes[i]);
  EXPECT_EQ(earlier->program.actions[3].block, 1U);
  // Of a moment that is the moved action itself, what was done before it.
  EXPECT_EQ(changed(program, lifetimes, Remedy::earlier, {false, true, false}, 3)->action, 3U);
  EXPECT_FALSE(changed(program, lifetimes, Remedy::freed_earlier, {true, true, true}, 4));
  EXPECT_FALSE(changed(program, lifetimes, Remedy::pool, {false, false, false}, 4));
}

TEST(RemediesTest, BlocksAreAlikeByStackElseByCategoryAndSize) {
  std::vector<Lifetime> lifetimes(4);
  for (Lifetime& lifetime : lifetimes) lifetime.rounded = 1_MiB;
  lifetimes[1].stack = lifetimes[3].stack = 7;
  lifetimes[3].rounded = 2_MiB;
  const std::vector<BlockUse> uses{{Category::weights}, {}, {Category::inputs}, {}};
  EXPECT_THAT(blocks_like(lifetimes, uses, {1}), ElementsAre(false, true, false, true));
  EXPECT_THAT(blocks_like(lifetimes, uses, {0}), ElementsAre(true, false, false, false));
}

// GPT-2 with another sequence length in every step: docs/whatif.md walks through these figures.
TEST(RemediesTest, GradientsOfGpt2InAPoolHoldNothingAtTheSamePeak) {
  const fs::path file = fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data/recorded/gpt2_var.pickle.gz";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  const Holders holders = holders_with(read_client_programs(file, {}).front());
  EXPECT_EQ(holders.reserved, 14'932_MiB);
  const HeldIdle& pin = holders.pins.at(0);
  EXPECT_EQ(pin.pin.idle, 388'399'104U);
  EXPECT_EQ(pin.category, Category::gradients);
  EXPECT_THAT(freeing(pin), ElementsAre(Remedy::pool));
  EXPECT_EQ(pin.tried.at(0).held, 2_MiB);
  EXPECT_EQ(pin.tried.at(0).reserved, 14'916_MiB);
  EXPECT_EQ(pin.tried.at(1).reserved, 15'106_MiB);  // earlier: more than 1 % above the peak
  EXPECT_THAT(holders.pins.at(4).tried, SizeIs(2));
  EXPECT_THAT(holders.pins.at(5).tried, IsEmpty());
}

TEST(RemediesTest, AreWrittenAsJson) {
  const ClientProgram program = fragment(kLate);
  WhatIfQuestion question;
  question.confs = {"", "expandable_segments:True"};
  question.peaks = true;
  const Json pin = whatif_json({program}, answer_whatif({program}, question))["pins"][0];
  EXPECT_EQ(pin["freed_by"], Json::array({"expandable_segments:True", "pool", "earlier"}));
  EXPECT_EQ(pin["tried"][0],
            (Json{{"way", "pool"}, {"bytes_held", 0}, {"peak_reserved_bytes", 112_MiB}, {"frees", true}}));
}

}  // namespace
}  // namespace vramlab
