// Small programs of public writings on the caching allocator, with the figures that follow from the rules, in
// MiB of reserved memory; as allocation scripts, and under the other allocators.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recordings/replay/lifetimes.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;

ClientProgram laboratory_script(const std::string& lines) {
  return parse_allocation_script("op,id,bytes,stream,pool,text\n" + lines, "case.csv");
}

// `count` requests of one size, their ids beginning with `name`.
std::string alloc_lines(const std::string& name, int count, const std::string& size, bool marks = false) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += "alloc," + name + std::to_string(i) + ',' + size + '\n' + (marks ? "mark,,,,,m\n" : "");
  }
  return lines;
}
std::string free_lines(const std::string& name, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += "free," + name + std::to_string(i) + '\n';
  return lines;
}

ProgramOutcome laboratory_replay(const std::string& lines, const std::string& conf = "",
                                 const char* backend = "native") {
  ReplaySetup setup;
  setup.settings = parse_allocator_settings(conf);
  setup.total = 8_GiB + setup.context;
  setup.backend = parse_backend(backend);
  return replay_program(laboratory_script(lines), setup);
}

// Reserved at each mark.
std::vector<Bytes> reserved_at_marks(const ProgramOutcome& outcome) {
  std::vector<Bytes> values;
  for (const MarkFigures& mark : outcome.marks)
    values.push_back(static_cast<Bytes>(mark.stats.reserved_bytes.all().current) / 1_MiB);
  return values;
}

const std::string kMarkLine = "mark,,,,,m\n";
const std::string kSmallThenLarge = alloc_lines("a", 8, "16MiB") + kMarkLine + free_lines("a", 8) +
                                    kMarkLine + alloc_lines("b", 4, "32MiB") + kMarkLine;
const std::string kLargeThenSmall =
    alloc_lines("a", 4, "32MiB") + kMarkLine + free_lines("a", 4) + alloc_lines("b", 8, "16MiB") + kMarkLine;

// R1.7, R2.2: segments of 16 MiB serve no request of 32, so that 128 MiB lie idle.
TEST(Laboratory, EightOfSixteenThenFourOfThirtyTwoDoublesWhatIsReserved) {
  EXPECT_THAT(reserved_at_marks(laboratory_replay(kSmallThenLarge)), ElementsAre(128, 128, 256));
}

// R3.1: the other way round each segment is cut in two.
TEST(Laboratory, FourOfThirtyTwoThenEightOfSixteenDoesNot) {
  EXPECT_THAT(reserved_at_marks(laboratory_replay(kLargeThenSmall)), ElementsAre(128, 128));
}

// R5.3: pages of 20 MiB, as many as are needed: 16 k up to a multiple of 20.
TEST(Laboratory, ExpandableSegmentsGrowByPages) {
  EXPECT_THAT(
      reserved_at_marks(laboratory_replay(alloc_lines("a", 8, "16MiB", true), "expandable_segments:True")),
      ElementsAre(20, 40, 60, 80, 80, 100, 120, 140));
}

// R1.6, R5.2: 2 MiB take a page of 20 of the large pool, half a MiB one of 2 of the small pool.
TEST(Laboratory, SmallAndLargeRequestsHavePagesOfTheirOwn) {
  EXPECT_THAT(reserved_at_marks(laboratory_replay("alloc,a,2MiB\nalloc,b,512KiB\n" + kMarkLine,
                                                  "expandable_segments:True")),
              ElementsAre(22));
}

// Section 12: cudaMalloc holds what is in use; chunks of fixed sizes stay; best fit with coalescing, growing
// from 2 MiB by doubling: 2 + 4 + 8 + 16 and so on. Regions are not joined, so 32 MiB need one of their own.
TEST(Laboratory, OtherAllocatorsOnTheSamePrograms) {
  EXPECT_THAT(reserved_at_marks(laboratory_replay(kSmallThenLarge, "", "direct")), ElementsAre(128, 0, 128));
  EXPECT_THAT(reserved_at_marks(laboratory_replay(kSmallThenLarge, "", "fixed-pool")),
              ElementsAre(128, 128, 256));
  EXPECT_THAT(reserved_at_marks(laboratory_replay(kLargeThenSmall, "", "fixed-pool")), ElementsAre(128, 256));
  EXPECT_THAT(reserved_at_marks(laboratory_replay(kSmallThenLarge, "", "cudaMallocAsync")),
              ElementsAre(128, 128, 128));
  const ProgramOutcome jax = laboratory_replay(kSmallThenLarge, "", "bfc");
  const Bytes share = (8_GiB + kContextBytes) / 4 * 3 / 1_MiB;
  EXPECT_THAT(reserved_at_marks(jax), ElementsAre(share, share, share));
  EXPECT_EQ(jax.highest_allocated, 128_MiB);
}

TEST(Laboratory, ABackendTellsOfFailuresAndPeaks) {
  const ProgramOutcome outcome = laboratory_replay(
      "alloc,a,5GiB\nalloc,b,5GiB\nfree,b\nfree,a\nreset_peak\nalloc,c,1GiB\n", "", "direct");
  EXPECT_EQ(outcome.ooms, 1u);
  ASSERT_TRUE(outcome.first_oom);
  EXPECT_EQ(outcome.first_oom->action, 1u);
  EXPECT_EQ(outcome.highest_reserved, 5_GiB);
  EXPECT_EQ(outcome.stats.reserved_bytes.all().peak, static_cast<std::int64_t>(1_GiB));
  EXPECT_FALSE(outcome.fits());
}

// R3.8: a free that waits for stream 7 is done when that stream is, whatever others do; one that waits for
// both needs both.
TEST(Laboratory, SyncMayBeOfOneStream) {
  const std::string lines =
      "alloc,a,16MiB\nrecord_stream,a,,7\nfree,a\n"
      "alloc,b,16MiB\nrecord_stream,b,,7\nrecord_stream,b,,8\nfree,b\n"
      "sync,,,8\nalloc,c,512\nmark,,,,,eight\nsync,,,7\nalloc,d,512\nmark,,,,,seven\n";
  const ProgramOutcome outcome = laboratory_replay(lines);
  ASSERT_EQ(outcome.marks.size(), 2u);
  EXPECT_EQ(outcome.marks[0].stats.active_bytes.all().current, static_cast<std::int64_t>(32_MiB + 512));
  EXPECT_EQ(outcome.marks[1].stats.active_bytes.all().current, 1024);
  const std::vector<Lifetime> lifetimes = lifetimes_of(laboratory_script(lines));
  EXPECT_EQ(lifetimes[0].returned, lifetimes[1].returned);  // at the second sync
  EXPECT_EQ(lifetimes[0].returned, 10u);
}

TEST(Laboratory, AScriptMayBeOfAnotherVersion) {
  const ClientProgram program = parse_allocation_script("op,text\nsettings,expandable_segments_reserve:0.5\n",
                                                        "case.csv", TorchVersion{2, 14});
  EXPECT_EQ(program.settings.torch, (TorchVersion{2, 14}));
}

}  // namespace
}  // namespace vramlab
