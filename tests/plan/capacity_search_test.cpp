// The search that can say no: what it rules out is compared with every order of packing by hand.
#include "plan/capacity_search.hpp"

#include <gtest/gtest.h>

#include "plan/validator.hpp"

namespace vramlab {
namespace {

using Answer = CapacitySearch::Answer;

/// One run with nothing to prefer.
struct Searched {
  Searched(std::vector<Buffer> given, Bytes capacity, std::size_t most_nodes = 1000)
      : buffers(std::move(given)), timeline(timeline_of(buffers)), search(buffers, timeline) {
    answer = search.run(capacity, std::vector<std::int64_t>(buffers.size()), most_nodes);
  }

  std::vector<Buffer> buffers;
  Timeline timeline;
  CapacitySearch search;
  Answer answer{};
};

// As tests/data/plan/above-load.csv.
const std::vector<Buffer> kAboveLoad{{0, 1, 3}, {0, 3, 2}, {1, 2, 2}, {1, 4, 1},
                                     {2, 5, 1}, {2, 3, 1}, {3, 4, 3}, {4, 5, 4}};

TEST(CapacitySearch, FindsAPlanThatFits) {
  const Searched searched(kAboveLoad, 6);
  ASSERT_EQ(searched.answer, Answer::fits);
  EXPECT_LE(check_plan(kAboveLoad, searched.search.offsets()).top, 6U);
  EXPECT_TRUE(check_plan(kAboveLoad, searched.search.offsets()).sound());
}

TEST(CapacitySearch, RulesOutWhatNoPlanMeets) {
  EXPECT_EQ(Searched(kAboveLoad, 5).answer, Answer::does_not_fit);
  EXPECT_EQ(Searched(kAboveLoad, 4).answer, Answer::does_not_fit);  // less than the load
}

TEST(CapacitySearch, LeavesOpenWhatItMayNotLookAt) {
  const Searched searched(kAboveLoad, 5, 1);
  EXPECT_EQ(searched.answer, Answer::open);
  EXPECT_EQ(searched.search.nodes(), 2U);  // the one that was too many
}

TEST(CapacitySearch, StartsAfreshEveryTime) {
  Searched searched(kAboveLoad, 5);
  const std::vector<std::int64_t> scores(kAboveLoad.size());
  EXPECT_EQ(searched.search.run(6, scores, 1000), Answer::fits);
  EXPECT_EQ(searched.search.run(5, scores, 1000), Answer::does_not_fit);
  EXPECT_EQ(searched.search.run(6, scores, 1000), Answer::fits);
}

TEST(CapacitySearch, PutsBuffersWithoutASizeAtTheBottom) {
  const Searched searched({{0, 2, 4}, {1, 3, 0}}, 4);
  ASSERT_EQ(searched.answer, Answer::fits);
  EXPECT_EQ(searched.search.offsets()[1], 0U);
}

}  // namespace
}  // namespace vramlab
