// The best of fixed choices: all of a few, a search among many, the same on any number of threads.
#include "lab/fixed_choices.hpp"

#include <atomic>
#include <cmath>

#include <gmock/gmock.h>

namespace vramlab {
namespace {

using testing::ElementsAre;

// Work is the product of two sizes; what they take together must not exceed 1,200.
FixedRank product(const FixedPlaces& at) {
  if (7 * at[0] + 3 * at[1] > 1200) return std::nullopt;
  return std::vector{-static_cast<double>(at[0] * at[1])};
}

// The product's maximum lies where both take half of it: 600 / 7 = 85.7 and 600 / 3 = 200.
TEST(FixedChoices, ASearchFindsWhatBruteForceFinds) {
  double most = 0;
  for (std::int64_t x = 0; x < 300; ++x) {
    for (std::int64_t y = 0; y < 500; ++y) {
      if (const FixedRank rank = product({x, y})) most = std::max(most, -rank->front());
    }
  }
  const auto found = best_fixed_choice({{.count = 300}, {.count = 500}}, 1, product);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->tried_all);
  EXPECT_LT(found->runs, 500);
  EXPECT_GE(-found->rank.front(), 0.98 * most);  // the edge slants: a search may end beside the best
}

// Where all but every eighth value fails, as at the edge of a card's memory.
TEST(FixedChoices, ASearchLooksPastNeighboursThatFail) {
  const auto found = best_fixed_choice({{.count = 193}}, 1, [](const FixedPlaces& at) -> FixedRank {
    if (at[0] > 150 || (at[0] > 132 && at[0] % 8 != 0)) return std::nullopt;
    return std::vector{-static_cast<double>(at[0])};
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->places.front(), 144);
  EXPECT_LT(found->runs, 60);
}

TEST(FixedChoices, FewAreAllTriedAndTheFirstOfEqualsStands) {
  std::atomic<int> runs = 0;
  const auto found =
      best_fixed_choice({{.count = 8, .in_order = false}, {.count = 16}}, 1, [&](const auto& at) {
        ++runs;
        return at[0] == 0 ? std::nullopt : FixedRank{{static_cast<double>(std::abs(at[1] - 5) / 2)}};
      });
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->tried_all);
  EXPECT_EQ(found->runs, 8 * 16);
  EXPECT_EQ(runs, 8 * 16);  // each once
  EXPECT_THAT(found->places, ElementsAre(1, 4));
}

TEST(FixedChoices, ThreadsChangeNothing) {
  const std::vector<FixedDial> dials{{.count = 3, .in_order = false},
                                     {.count = 200, .group = "a"},
                                     {.count = 90, .group = "a"},
                                     {.count = 400}};
  const auto run = [](const FixedPlaces& at) -> FixedRank {
    const double x = static_cast<double>(at[1] - 57) + static_cast<double>(at[0]);
    const double y = static_cast<double>(at[2] - 31);
    const double z = static_cast<double>(at[3] - 222);
    if (at[1] + at[2] > 250) return std::nullopt;
    return std::vector{std::floor(x * x / 7) + std::floor(y * y / 7), std::abs(z)};
  };
  const auto one = best_fixed_choice(dials, 1, run);
  ASSERT_TRUE(one);
  for (const unsigned threads : {2U, 5U}) {
    const auto more = best_fixed_choice(dials, threads, run);
    ASSERT_TRUE(more);
    EXPECT_EQ(more->places, one->places);
    EXPECT_EQ(more->runs, one->runs);
  }
  EXPECT_EQ(one->places[3], 222);
  EXPECT_EQ(one->rank.front(), 0);
}

TEST(FixedChoices, NoSearchTakesMoreThan500Runs) {
  std::vector<FixedDial> dials;
  for (int i = 0; i < 900; ++i) dials.push_back({.count = 50, .group = "batch"});
  const auto found = best_fixed_choice(dials, 1, [](const FixedPlaces& at) {
    double sum = 0;
    for (const std::int64_t place : at) sum += static_cast<double>(place);
    return FixedRank{{-sum}};
  });
  ASSERT_TRUE(found);
  EXPECT_LE(found->runs, 500);
  EXPECT_EQ(found->places, FixedPlaces(900, 49));  // jobs that are alike begin alike
}

TEST(FixedChoices, WhereNothingIsSafeThereIsNone) {
  const auto none = [](const FixedPlaces&) { return FixedRank{}; };
  EXPECT_FALSE(best_fixed_choice({{.count = 5}}, 2, none));
  EXPECT_FALSE(best_fixed_choice({{.count = 100000}, {.count = 7, .in_order = false}}, 2, none));
}

}  // namespace
}  // namespace vramlab
