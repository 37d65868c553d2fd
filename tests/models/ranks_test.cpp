// Sizes by number of ranks, by hand: what two recorded numbers say of a third.
#include "models/ranks.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

TEST(Ranks, WhatIsEqualStays) { EXPECT_EQ(size_with_ranks(4096, 4096, 1, 2, 8), 4096U); }

// 10,001 bytes over 1, 2, 4, 8 and 3 ranks: 10,001, 5,001, 2,501, 1,251 and 3,334.
TEST(Ranks, SharesAreRoundedUp) {
  EXPECT_EQ(size_with_ranks(10'001, 5'001, 1, 2, 4), 2'501U);
  EXPECT_EQ(size_with_ranks(10'001, 5'001, 1, 2, 8), 1'251U);
  EXPECT_EQ(size_with_ranks(10'001, 5'001, 1, 2, 3), 3'334U);
  EXPECT_EQ(size_with_ranks(5'001, 2'501, 2, 4, 8), 1'251U);
}

// The embedding of the sharded decoder: 32,000 × 1,024 numbers of 4 bytes; 65,536,000 B with 2 ranks.
TEST(Ranks, AShardedWeightIsOneOverTheRanks) {
  for (const std::uint32_t n : {4U, 8U, 16U, 64U}) {
    EXPECT_EQ(size_with_ranks(131'072'000, 65'536'000, 1, 2, n), 131'072'000U / n);
  }
}

// 1,000 bytes that stay and 8,000 that are shared.
TEST(Ranks, APartMayStay) {
  EXPECT_EQ(size_with_ranks(9'000, 5'000, 1, 2, 4), 3'000U);
  EXPECT_EQ(size_with_ranks(9'000, 5'000, 1, 2, 8), 2'000U);
}

// A list with one entry of 64 bytes a rank behind 100 bytes.
TEST(Ranks, WhatGrowsGrowsByEqualSteps) {
  EXPECT_EQ(size_with_ranks(164, 228, 1, 2, 8), 612U);
  EXPECT_EQ(size_with_ranks(100, 900, 1, 2, 8), 900U);  // faster than the ranks: nobody knows
}

RankModel model_of(std::uint32_t rank, std::uint32_t world, Bytes outside = 0) {
  RankModel model;
  model.place = {world, rank};
  model.spec.outside = outside;
  return model;
}

TEST(Ranks, MemoryOutsideFollowsTheLargestRecordedNumbers) {
  RankModel last = model_of(0, 4, 1'040);
  last.fewer.emplace();
  EXPECT_EQ(RankModels({model_of(0, 1, 500), model_of(0, 2, 1'000), last}).at(8)[0].spec.outside, 1'120U);
  last.place.world = 2;
  EXPECT_EQ(RankModels({model_of(0, 1, 500), last}).at(8)[0].spec.outside, 1'040U);
}

TEST(Ranks, RefusesWhatNothingIsKnownOf) {
  const RankModels models({model_of(0, 2), model_of(1, 2)});
  EXPECT_EQ(models.at(2).size(), 2U);
  EXPECT_THROW(static_cast<void>(models.at(4)), InputError);
  EXPECT_THROW(static_cast<void>(models.at(0)), InputError);
  EXPECT_THROW(RankModels({model_of(2, 2)}), InputError);
  EXPECT_THROW(RankModels({model_of(0, 2), model_of(0, 2)}), InputError);
  EXPECT_THROW(RankModels({}), InputError);
}

}  // namespace
}  // namespace vramlab
