// The law of memory behind `predictive`, against laws of the same form.
#include "policies/predictors/memory_law.hpp"

#include <gtest/gtest.h>

namespace vramlab {
namespace {

double truth(const WorkPair& pair) {
  return 0.1 + 0.002 * static_cast<double>(pair.batch * pair.size) / 10 +
         1e-6 * static_cast<double>(pair.batch * pair.size * pair.size);
}

// No term grows faster than batch·size², none slower than not at all.
TEST(MemoryLaw, OneReadingBoundsEveryOther) {
  MemoryLaw law;
  law.add({8, 64}, truth({8, 64}), 0);
  EXPECT_LE(law.expected({16, 64}), 2 * truth({8, 64}));
  EXPECT_GE(law.upper({16, 64}, 0), truth({16, 64}));
  EXPECT_GE(law.upper({8, 128}, 0), truth({8, 128}));
  EXPECT_GE(law.upper({4, 128}, 0), truth({8, 64}) / 2);
  EXPECT_LE(law.expected({4, 64}), truth({8, 64}));
  EXPECT_GE(law.expected({4, 64}), truth({8, 64}) / 2);
}

TEST(MemoryLaw, AMeasuredPairIsWhatWasMeasured) {
  MemoryLaw law;
  law.add({8, 64}, 0.3, 0);
  law.add({16, 64}, 0.5, 0);
  EXPECT_DOUBLE_EQ(law.expected({16, 64}), 0.5);
  EXPECT_DOUBLE_EQ(law.upper({16, 64}, 2), 0.5);
}

TEST(MemoryLaw, SixReadingsTellALawOfItsForm) {
  MemoryLaw law;
  for (const WorkPair& pair : {WorkPair{8, 64}, {16, 64}, {8, 96}, {16, 96}, {32, 64}, {8, 128}}) {
    law.add(pair, truth(pair), 0);
  }
  EXPECT_NEAR(law.expected({24, 80}), truth({24, 80}), 0.01 * truth({24, 80}));
  EXPECT_NEAR(law.expected({12, 112}), truth({12, 112}), 0.01 * truth({12, 112}));
}

TEST(MemoryLaw, AnErrorOfAPredictionWidensTheNext) {
  MemoryLaw good;
  MemoryLaw bad;
  for (MemoryLaw* law : {&good, &bad}) law->add({8, 64}, 0.2, 0);
  good.add({16, 64}, good.expected({16, 64}), 0);
  bad.add({16, 64}, 1.3 * bad.expected({16, 64}), 0);
  EXPECT_LT(good.misfit(), 0.02);
  EXPECT_GT(bad.misfit(), 0.05);
}

// Real BERT training: the optimizer's step is the peak up to four samples, so the two readings hardly differ;
// at 24 samples of 152 a step took 0.371.
TEST(MemoryLaw, BeyondReadingsThatHardlyGrewTheStrictBoundHolds) {
  MemoryLaw hidden;
  hidden.add({2, 128}, 0.0511, 0);
  hidden.add({4, 128}, 0.0558, 0);
  EXPECT_DOUBLE_EQ(hidden.upper({24, 128}, 2), 6 * 0.0558);
  EXPECT_DOUBLE_EQ(hidden.upper({24, 152}, 2), 6 * 0.0558 * (152 * 152 / (128.0 * 128)));
  EXPECT_GT(hidden.upper({24, 152}, 2), 0.371);
  MemoryLaw seen;
  seen.add({2, 128}, 0.0511, 0);
  seen.add({4, 128}, 0.0850, 0);
  EXPECT_LT(seen.upper({24, 128}, 2), 0.95 * 6 * 0.0850);
}

// A reading of the pair itself says more than one of its neighbour.
TEST(MemoryLaw, NothingUnmeasuredTakesLessThanASmallerPairTook) {
  MemoryLaw law;
  law.add({8, 64}, 0.2, 0);
  law.add({12, 64}, 0.6, 0);
  law.add({16, 64}, 0.5, 0);  // contradicts the one before
  EXPECT_GE(law.upper({16, 65}, 0), 0.6);
  EXPECT_GE(law.upper({17, 65}, 0), 0.6);
  EXPECT_DOUBLE_EQ(law.upper({16, 64}, 2), 0.5);
}

}  // namespace
}  // namespace vramlab
