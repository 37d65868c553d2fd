// Birth, death and place of a program's blocks, from scripts.
#include "recordings/replay/lifetimes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;

ClientProgram script_of(const std::string& lines) {
  return parse_allocation_script("op,id,bytes,stream,pool,text\n" + lines, "script.csv");
}

TEST(Lifetimes, GoFromTheRequestToTheFree) {
  const ClientProgram program = script_of("alloc,a,1000\nalloc,b,512\nfree,a\nalloc,a,1\nfree,b\n");

  const std::vector<Lifetime> lifetimes = lifetimes_of(program);

  ASSERT_EQ(lifetimes.size(), 3U);
  EXPECT_EQ(lifetimes[0].born, 0U);
  EXPECT_EQ(lifetimes[0].freed, 2U);
  EXPECT_EQ(lifetimes[0].returned, 2U);
  EXPECT_EQ(lifetimes[0].requested, 1000U);
  EXPECT_EQ(lifetimes[0].rounded, 1024U);  // R1.2
  EXPECT_EQ(lifetimes[1].rounded, 512U);
  EXPECT_EQ(lifetimes[2].born, 3U);  // the name again, another block
  EXPECT_EQ(lifetimes[2].rounded, 512U);
  EXPECT_TRUE(lifetimes[2].outlives(program));
  EXPECT_FALSE(lifetimes[0].outlives(program));
}

// R3.8: a block that another stream was recorded for comes back when that stream is done.
TEST(Lifetimes, LastUntilOtherStreamsAreDone) {
  const ClientProgram program = script_of(
      "alloc,a,512\nalloc,b,512\nrecord_stream,a,,1\nfree,a\nfree,b\nsync\nalloc,c,512,1\nrecord_stream,c,,"
      "0\n"
      "free,c\n");

  const std::vector<Lifetime> lifetimes = lifetimes_of(program);

  EXPECT_EQ(lifetimes[0].freed, 3U);
  EXPECT_EQ(lifetimes[0].returned, 5U);
  EXPECT_EQ(lifetimes[1].returned, 4U);
  EXPECT_EQ(lifetimes[2].stream, 1U);
  EXPECT_EQ(lifetimes[2].freed, 8U);
  EXPECT_EQ(lifetimes[2].returned, program.actions.size());  // nothing says when
}

TEST(Lifetimes, BelongToTheStretchBeforeTheNextMark) {
  const ClientProgram program =
      script_of("alloc,a,512\nmark,,,,,one\nalloc,b,512\nmark,,,,,two\nalloc,c,512\n");

  const std::vector<Lifetime> lifetimes = lifetimes_of(program);

  EXPECT_EQ(lifetimes[0].step, 0U);
  EXPECT_EQ(lifetimes[1].step, 1U);
  EXPECT_EQ(lifetimes[2].step, 2U);
  EXPECT_THAT(step_names(program), ElementsAre("one", "two", ""));
}

TEST(Lifetimes, KnowPoolsAndCaptures) {
  const ClientProgram program = script_of(
      "pool_new,,,,p,plain\nalloc,a,512,,p\ncapture_begin,,,3,g\nalloc,b,512,3\ncapture_end,,,,g\nalloc,c,"
      "512\n");

  const std::vector<Lifetime> lifetimes = lifetimes_of(program);

  EXPECT_NE(lifetimes[0].pool, 0U);
  EXPECT_FALSE(lifetimes[0].captured);
  EXPECT_TRUE(lifetimes[1].captured);
  EXPECT_FALSE(lifetimes[2].captured);
  EXPECT_EQ(lifetimes[2].pool, 0U);
}

TEST(Lifetimes, RequestsOfNothingAndOfTooMuchHaveNoSize) {
  const std::vector<Lifetime> lifetimes = lifetimes_of(script_of("alloc,a,0\nalloc,b,1152921504606846976\n"));
  EXPECT_EQ(lifetimes[0].rounded, 0U);
  EXPECT_EQ(lifetimes[1].rounded, 0U);  // R1.1
}

// Two blocks of one small segment of 2 MiB lie side by side; 20 MiB take a segment of their own and 2 MiB
// more than 1 MiB of it are not worth a split (R1.7, R3.1).
TEST(Lifetimes, HaveTheirPlaceUnderTheReplayedSettings) {
  const ClientProgram program = script_of("alloc,a,1000\nalloc,b,512\nalloc,c,19.5MiB\nalloc,d,0\n");
  std::vector<BlockPlace> places;
  replay_program(program, {}, {.places = &places});

  const std::vector<Lifetime> lifetimes = lifetimes_of(program, &places);

  ASSERT_TRUE(lifetimes[0].place && lifetimes[1].place && lifetimes[2].place);
  EXPECT_EQ(lifetimes[0].place->size, 1024U);
  EXPECT_EQ(lifetimes[1].place->address, lifetimes[0].place->address + 1024);
  EXPECT_EQ(lifetimes[2].place->size, 20_MiB);
  EXPECT_FALSE(lifetimes[3].place);
}

}  // namespace
}  // namespace vramlab
