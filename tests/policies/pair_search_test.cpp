// The search for a pair against looking at every pair.
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "policies/tuners/work_pairs.hpp"

namespace vramlab {
namespace {

using Allowed = std::function<bool(const WorkPair&)>;
using Score = std::function<double(const WorkPair&)>;

double work(const WorkPair& pair) { return static_cast<double>(pair.batch * pair.size * pair.size); }

// Of every batch, or of those in steps of an eighth.
std::optional<double> highest_score(const PairBox& box, const Allowed& allowed, const Score& score,
                                    bool in_steps = false) {
  std::optional<double> best;
  for (std::int64_t batch = box.low.batch; batch <= box.high.batch; batch += 1 + (in_steps ? batch / 8 : 0)) {
    for (std::int64_t size = box.low.size; size <= box.high.size; size += box.unit) {
      if (allowed({batch, size})) best = std::max(best.value_or(0), score({batch, size}));
    }
  }
  return best;
}

class SomeSearch {
 public:
  explicit SomeSearch(unsigned seed) : random_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution{low, high}(random_);
  }

  PairBox box(std::int64_t most_batches) {
    PairBox box{.unit = between(1, 32)};
    box.low = {between(1, 4), between(1, 4) * box.unit};
    box.high = {between(box.low.batch, most_batches), box.low.size + between(0, 40) * box.unit};
    return box;
  }

  // A law that grows with both parameters; at some seeds nothing is allowed, at some everything.
  Allowed allowed(const PairBox& box) {
    const auto by_batch = static_cast<double>(between(0, 20));
    const auto by_size = static_cast<double>(between(0, 5));
    const double limit = 1.2 * work(box.high) * static_cast<double>(between(0, 100)) / 100;
    return [=](const WorkPair& pair) {
      const double rest =
          by_batch * static_cast<double>(pair.batch) + by_size * static_cast<double>(pair.size);
      return work(pair) + rest <= limit;
    };
  }

  // The objectives of `predictive`: work, work per second, samples per second.
  Score score(const PairBox& box) {
    const double base = 0.01 * work(box.high) * static_cast<double>(between(1, 100));
    switch (between(0, 2)) {
      case 0:
        return work;
      case 1:
        return [base](const WorkPair& pair) { return work(pair) / (base + work(pair)); };
      default:
        return [base](const WorkPair& pair) { return static_cast<double>(pair.batch) / (base + work(pair)); };
    }
  }

 private:
  std::mt19937 random_;
};

TEST(PairSearch, FindsWhatLookingAtEveryPairFinds) {
  int found = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SomeSearch some{seed};
    const PairBox box = some.box(8);  // each of them is looked at
    const Allowed allowed = some.allowed(box);
    const Score score = some.score(box);
    const auto expected = highest_score(box, allowed, score);
    const auto pair = PairSearch{box, allowed, score}.run();
    ASSERT_EQ(pair.has_value(), expected.has_value()) << "seed " << seed;
    if (!pair) continue;
    ++found;
    EXPECT_TRUE(allowed(*pair)) << "seed " << seed;
    EXPECT_EQ(score(*pair), *expected) << "seed " << seed;
  }
  EXPECT_GT(found, 1000);
}

TEST(PairSearch, OfManyBatchesItFindsAtLeastTheBestInStepsOfAnEighth) {
  int more = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SomeSearch some{seed};
    const PairBox box = some.box(200);
    if (box.low.size == box.high.size) continue;  // the largest batch, whatever the steps
    const Allowed allowed = some.allowed(box);
    const Score score = some.score(box);
    const auto least = highest_score(box, allowed, score, true);
    const auto pair = PairSearch{box, allowed, score}.run();
    ASSERT_EQ(pair.has_value(), least.has_value()) << "seed " << seed;
    if (!pair) continue;
    EXPECT_TRUE(allowed(*pair)) << "seed " << seed;
    EXPECT_GE(score(*pair), *least) << "seed " << seed;
    more += score(*pair) > *least ? 1 : 0;
  }
  EXPECT_GT(more, 500);
}

// 4 batches, 6 bisections each, if none were cut short: 28 questions with the smallest sizes.
TEST(PairSearch, DoesNotAskAboutWhatCannotBeBetter) {
  int questions = 0;
  const Allowed allowed = [&](const WorkPair& pair) {
    ++questions;
    return pair.size <= 68 - 4 * pair.batch;  // 64, 60, 56, 52
  };
  const Score score = [](const WorkPair& pair) { return static_cast<double>(pair.size); };
  const auto pair = PairSearch{PairBox{{1, 1}, {4, 64}}, allowed, score}.run();
  EXPECT_EQ(pair, (WorkPair{1, 64}));
  EXPECT_EQ(questions, 10);
}

}  // namespace
}  // namespace vramlab
