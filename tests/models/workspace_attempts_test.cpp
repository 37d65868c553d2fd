#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/recorded_program.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;

// As with the weight gradients in the recording sr_limits, whose sizes at other shapes differ by the same
// number of bytes.
TEST(WorkspaceAttempts, AConstantOfAKernelStays) {
  EXPECT_THAT(attempts_at({1000, 1010, 990}, 2000), ElementsAre(2000, 2010, 1990));
}

// The second choice of the upsampling's forward pass copies half of what the first does.
TEST(WorkspaceAttempts, OtherSizesGrowWithTheFirst) {
  EXPECT_THAT(attempts_at({1000, 500, 2900}, 3000), ElementsAre(3000, 1500, 8700));
}

TEST(WorkspaceAttempts, AtTheRecordedShapeNothingMoves) {
  EXPECT_THAT(attempts_at({54893568, 55715328, 160585728}, 54893568),
              ElementsAre(54893568, 55715328, 160585728));
}

// The last convolution's forward pass at (8, 80) and at (8, 128), as recorded: carried over, no size is off
// by more than 2 %, and none that was larger than the first is smaller.
TEST(WorkspaceAttempts, WhatWasAskedForAtALargerShapeIsMet) {
  const std::vector<Bytes> small{54893568, 55715328, 160585728, 59909632};
  const std::vector<Bytes> large{140516352, 142616064, 411084288, 143664640};
  const std::vector<Bytes> carried = attempts_at(small, large[0]);
  for (std::size_t i = 0; i < large.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(carried[i]) / static_cast<double>(large[i]), 1, 0.02) << i;
    EXPECT_GE(carried[i], large[0]);
  }
}

TEST(WorkspaceAttempts, NoSizeIsNothing) { EXPECT_THAT(attempts_at({1000, 901}, 50), ElementsAre(50, 1)); }

}  // namespace
}  // namespace vramlab
