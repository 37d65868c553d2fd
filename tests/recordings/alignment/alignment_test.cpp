// Steps of programs, and which request of one is which of another.
#include "recordings/alignment/alignment.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recordings/alignment/blend.hpp"
#include "recordings/alignment/common_subsequence.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

ReadProgram script(const std::string& lines) {
  return ReadProgram(parse_allocation_script("op,id,bytes,stream,pool,text\n" + lines, "script"));
}

TEST(CommonSubsequenceTest, KeepsAsMuchAsTheClassicExample) {  // Myers 1986: ABCABBA and CBABAC have 4
  const std::vector<std::uint32_t> a{'A', 'B', 'C', 'A', 'B', 'B', 'A'};
  const std::vector<std::uint32_t> b{'C', 'B', 'A', 'B', 'A', 'C'};
  const auto pairs = common_subsequence(a, b);
  ASSERT_EQ(pairs.size(), 4U);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(a[pairs[i].first], b[pairs[i].second]);
    if (i == 0) continue;
    EXPECT_LT(pairs[i - 1].first, pairs[i].first);
    EXPECT_LT(pairs[i - 1].second, pairs[i].second);
  }
}

TEST(CommonSubsequenceTest, EndsWhereNothingIsCommon) {
  const std::vector<std::uint32_t> a{1, 2};
  const std::vector<std::uint32_t> b{3};
  EXPECT_THAT(common_subsequence(a, b), IsEmpty());
  EXPECT_THAT(common_subsequence(a, {}), IsEmpty());
  EXPECT_THAT(common_subsequence(b, b), ElementsAre(Pair(0U, 0U)));
}

// More differences than are searched for at once: what is common at the end is still found.
TEST(CommonSubsequenceTest, GoesOnAfterManyDifferences) {
  std::vector<std::uint32_t> a(5000);
  std::vector<std::uint32_t> b(5000);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    a[i] = 2 * i;
    b[i] = 2 * i + 1;
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    a.push_back(1'000'000 + i);
    b.push_back(1'000'000 + i);
  }
  EXPECT_GE(common_subsequence(a, b).size(), 50U);
}

TEST(StepsTest, TheMarkThatComesMostOftenEndsAStep) {
  const ReadProgram read = script(
      "alloc,w,1MiB\nmark,,,,,built\nalloc,a,2MiB\nfree,a\nmark,,,,,step\nalloc,a,2MiB\nfree,a\nmark,,,,,"
      "step\n"
      "alloc,z,1MiB\n");
  EXPECT_EQ(read.steps.from, "marks");
  EXPECT_THAT(read.steps.ends, ElementsAre(2U, 5U, 8U, 9U));
  EXPECT_EQ(read.steps.count(), 2U);
  EXPECT_EQ(read.steps.stretch_of(0), 0U);
  EXPECT_EQ(read.steps.stretch_of(2), 1U);
  EXPECT_EQ(read.steps.stretch_of(8), 3U);
}

TEST(StepsTest, PhasesAreNoStepsAndNamedShapesAre) {
  const char* const kPhases =
      "mark,,,,,forward\nalloc,a,1MiB\nmark,,,,,backward\nalloc,b,1MiB\nmark,,,,,forward\nalloc,c,1MiB\nmark,"
      ",,,,backward\n";
  EXPECT_EQ(script(kPhases).steps.count(), 2U);
  const char* const kShapes =
      "mark,,,,,built\nalloc,a,1MiB\nmark,,,,,batch 1\nalloc,b,1MiB\nmark,,,,,batch "
      "1\nalloc,c,1MiB\nmark,,,,,batch 2\n"
      "alloc,d,1MiB\nmark,,,,,batch 2\nalloc,e,1MiB\nmark,,,,,batch 4\n";
  EXPECT_THAT(script(kShapes).steps.ends, ElementsAre(1U, 3U, 5U, 7U, 9U, 11U, 11U));
}

TEST(StepsTest, AProgramWithoutMarksAndGradientsIsOneStep) {
  const ReadProgram read = script("alloc,a,2MiB\nfree,a\n");
  EXPECT_EQ(read.steps.from, "none");
  EXPECT_EQ(read.steps.count(), 1U);
}

TEST(AlignmentTest, PairsByOrderAndSizeAndThenByOrder) {
  const ReadProgram a = script("alloc,x,1MiB\nalloc,y,2MiB\nalloc,z,3MiB\nfree,y\n");
  const ReadProgram b = script("alloc,x,1MiB\nalloc,n,7MiB\nalloc,z,3MiB\nfree,n\n");
  const Alignment alignment = align(a, b);
  EXPECT_THAT(alignment.b_of, ElementsAre(0U, 1U, 2U, kUnpaired));  // as many between: 2 MiB became 7
}

// The blend is one program or the other where it is asked for all or nothing.
TEST(BlendTest, IsOneOfTheProgramsAtEitherEnd) {
  const ReadProgram a = script("alloc,x,1MiB\nalloc,y,2MiB\nfree,x\nalloc,z,3MiB\nfree,y\nfree,z\n");
  const ReadProgram b =
      script("alloc,x,1MiB\nalloc,n,5MiB\nalloc,y,4MiB\nalloc,z,3MiB\nfree,x\nfree,y\nfree,n\nfree,z\n");
  const Alignment alignment = align(a, b);
  Differences differences;
  differences.only_a.assign(a.program.actions.size(), 1);
  differences.only_b.assign(b.program.actions.size(), 1);
  differences.size.assign(b.program.actions.size(), 1);
  differences.life.assign(b.program.actions.size(), 1);
  const auto peak = [](const ClientProgram& program) {
    return replay_program(program, {}).highest_allocated;
  };
  EXPECT_EQ(peak(blended(a, b, alignment, differences, {false, false})), peak(a.program));
  EXPECT_EQ(peak(blended(a, b, alignment, differences, {true, true})), peak(b.program));
  EXPECT_EQ(blended(a, b, alignment, differences, {true, true}).actions.size(), b.program.actions.size());
}

}  // namespace
}  // namespace vramlab
