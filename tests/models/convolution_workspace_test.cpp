// Sizes as recorded at batch 6, patches of 96 × 96 (55,296 pixels).
#include <gtest/gtest.h>

#include "models/super_resolution.hpp"

namespace vramlab {
namespace {

constexpr WorkspaceShape kShape{6, 96};

Bytes size(const WorkspaceRule& rule, const ConvolutionSides& sides, const WorkspaceShape& shape = kShape) {
  return workspace_size({rule}, sides, shape);
}

TEST(ConvolutionWorkspace, CopiesBothSidesAndTheWeights) {
  const WorkspaceRule rule{.copies = WorkspaceCopies::both, .scratch = 16};
  EXPECT_EQ(size(rule, {64, 32, 1}), 21'307'408U);
  EXPECT_EQ(size(rule, {128, 32, 1}), 35'536'912U);
}

TEST(ConvolutionWorkspace, CopiesTheInputAlone) {
  EXPECT_EQ(size({.copies = WorkspaceCopies::input, .scratch = 16}, {192, 64, 1}), 42'909'712U);
}

TEST(ConvolutionWorkspace, PadsThreeChannelsToFour) {
  const WorkspaceRule rule{.copies = WorkspaceCopies::both, .pad_channels = 4, .scratch = 16};
  EXPECT_EQ(size(rule, {64, 3, 2}), 60'171'280U);
}

// Side 128 at the output's resolution: 32 × 32 tiles. The size was recorded at (2, 64).
TEST(ConvolutionWorkspace, CountsWholeTilesForWinograd) {
  const WorkspaceRule rule{.copies = WorkspaceCopies::winograd};
  EXPECT_EQ(size(rule, {64, 64, 2}, {2, 64}), 38'338'560U);
  EXPECT_EQ(size(rule, {64, 64, 2}, {2, 63}), 38'338'560U);  // 31.5 tiles are 32
}

// Recorded at (48, 36) and (28, 36): below 48 samples the weights' spectra are the larger part.
TEST(ConvolutionWorkspace, TransformsWholeImagesForFourier) {
  const WorkspaceRule rule{.copies = WorkspaceCopies::fourier};
  EXPECT_EQ(size(rule, {192, 64, 1}, {48, 36}), 431'161'344U);
  EXPECT_EQ(size(rule, {192, 64, 1}, {28, 36}), 424'525'824U);
}

TEST(ConvolutionWorkspace, TakesTheFirstRuleThatHolds) {
  const std::vector<WorkspaceRule> rules{
      {.lq = {0, 64}, .copies = WorkspaceCopies::none},
      {.batch = {2, 8}, .pixels = {20'000, 60'000}, .copies = WorkspaceCopies::input},
  };
  const ConvolutionSides sides{64, 64, 1};
  EXPECT_EQ(workspace_size(rules, sides, {6, 64}), 0U);
  EXPECT_EQ(workspace_size(rules, sides, {6, 80}), 4U * (64 * 38'400 + 9 * 64 * 64));
  EXPECT_EQ(workspace_size(rules, sides, {9, 80}), 0U);   // too many samples
  EXPECT_EQ(workspace_size(rules, sides, {8, 100}), 0U);  // too many pixels
  EXPECT_EQ(workspace_size({}, sides, {6, 80}), 0U);
}

}  // namespace
}  // namespace vramlab
