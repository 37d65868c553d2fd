#include "fit/loops.hpp"

#include <gtest/gtest.h>

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;

/// Writes flat programs allocation by allocation.
struct Flat {
  ShapeProgram program;
  std::uint32_t make(Bytes size) {
    program.allocations.push_back({{size}});
    program.ops.push_back({Kind::allocate, static_cast<std::uint32_t>(program.allocations.size() - 1)});
    return static_cast<std::uint32_t>(program.allocations.size() - 1);
  }
  void drop(std::uint32_t number) { program.ops.push_back({Kind::free, number}); }
};

// Decoding: a prompt, then a cache that each token replaces by a longer one.
ShapeProgram decoding(std::int64_t tokens) {
  Flat flat;
  std::uint32_t cache = flat.make(1000);
  const std::uint32_t other = flat.make(77);
  flat.drop(other);
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::uint32_t scratch = flat.make(512);
    const std::uint32_t longer = flat.make(static_cast<Bytes>(1010 + 10 * token));
    flat.drop(scratch);
    flat.drop(cache);
    cache = longer;
  }
  flat.make(9);
  flat.drop(cache);
  flat.drop(static_cast<std::uint32_t>(flat.program.allocations.size() - 1));
  return flat.program;
}

TEST(Loops, AreFoundWhereTheirRoundsFollowACounter) {
  const LoopedPrograms looped = take_out_loops({decoding(4), decoding(9), decoding(6)}, {{decoding(4), 0}},
                                               {{.variable = 2, .by_shape = {4, 9, 6}}});
  ASSERT_EQ(looped.loops.size(), 1U);
  EXPECT_EQ(looped.loops[0].count, 2U);
  EXPECT_LE(looped.loops[0].plus, 0);
  const std::int64_t rounds = 9 + looped.loops[0].plus;
  EXPECT_EQ(looped.shapes[1].rounds, std::vector<std::int64_t>{rounds});
  EXPECT_EQ(looped.shapes[0].ops, looped.shapes[1].ops);  // what is left no longer depends on the tokens
  EXPECT_EQ(looped.shapes[0].ops, looped.shapes[2].ops);
  for (const ShapeAllocation& one : looped.shapes[1].allocations) {
    EXPECT_EQ(one.sizes.size(), one.loop < 0 ? 1U : static_cast<std::size_t>(rounds));
  }
}

TEST(Loops, LayersThatHappenToRepeatAsOftenAreNone) {
  // nine layers in every shape; the counter is nine in one of them
  const LoopedPrograms looped = take_out_loops({decoding(9), decoding(9), decoding(9)}, {{decoding(9), 0}},
                                               {{.variable = 0, .by_shape = {4, 9, 6}}});
  EXPECT_TRUE(looped.loops.empty());
  EXPECT_EQ(looped.shapes[0].ops, decoding(9).ops);
}

// Samples are kept in a list and freed in reverse.
ShapeProgram lists(std::int64_t samples) {
  Flat flat;
  std::vector<std::uint32_t> kept;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::uint32_t ids = flat.make(static_cast<Bytes>(8 * (50 + 7 * i)));
    kept.push_back(flat.make(static_cast<Bytes>(2048 * (50 + 7 * i))));
    flat.drop(ids);
  }
  flat.make(4096);
  flat.drop(static_cast<std::uint32_t>(flat.program.allocations.size() - 1));
  for (; !kept.empty(); kept.pop_back()) flat.drop(kept.back());
  return flat.program;
}

TEST(Loops, FreesThatGoBackwardsAreLoopsToo) {
  const LoopedPrograms looped = take_out_loops({lists(2), lists(5), lists(8)}, {{lists(2), 0}},
                                               {{.variable = 0, .by_shape = {2, 5, 8}}});
  ASSERT_EQ(looped.loops.size(), 2U);
  const auto& ops = looped.shapes[2].ops;
  const auto backwards =
      std::find_if(ops.begin(), ops.end(), [](const RecordedOp& op) { return op.place.step < 0; });
  ASSERT_NE(backwards, ops.end());
  EXPECT_TRUE(backwards->place.from_end);
  EXPECT_EQ(looped.shapes[0].ops, ops);  // two samples are enough to know it by
}

}  // namespace
}  // namespace vramlab
