#include <array>

#include <gtest/gtest.h>

#include "fit/size_laws.hpp"

namespace vramlab {
namespace {

// Products 1, b·px², b at the six shapes of the recorded ResNet-50 (b, px).
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 6> kPieceShapes{
    {{4, 128}, {16, 128}, {8, 192}, {16, 224}, {32, 224}, {8, 288}}};
constexpr std::array<std::uint32_t, 3> kPieceCandidates{0, 1, 2};

std::vector<SizeSample> piece_samples(const std::array<Bytes, 6>& sizes) {
  std::vector<SizeSample> result;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto [b, px] = kPieceShapes[i];
    result.push_back({{1, b * px * px, b}, sizes[i]});
  }
  return result;
}

using Samples = std::vector<std::size_t>;
using Terms = std::vector<SizeTerm>;

// A workspace of the first convolution of a stage: 96 bytes a pixel at the small shapes, and 524,304 + 64 a
// pixel at the large ones.
TEST(SizePieces, TwoAlgorithmsOfARecordedConvolution) {
  const auto pieces = find_pieces(piece_samples({6291472, 25165840, 28311568, 51904528, 103284752, 42991632}),
                                  kPieceCandidates);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].samples, (Samples{0, 1, 2}));
  EXPECT_EQ(pieces[0].form.terms, (Terms{{0, 16, 1}, {1, 96, 1}}));
  EXPECT_EQ(pieces[1].samples, (Samples{3, 4, 5}));
  EXPECT_EQ(pieces[1].form.terms, (Terms{{0, 524304, 1}, {1, 64, 1}}));
}

// 272 bytes of padding at (4, 128); (16, 224) and (32, 224) have another algorithm, of which two
// piece_samples say too little.
TEST(SizePieces, PaddingOfLessThan512BytesBelongs) {
  auto recorded = piece_samples({3670304, 7602192, 8257552, 25494111, 41550431, 15630352});
  auto pieces = find_pieces(recorded, kPieceCandidates);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].samples, (Samples{0, 1, 2, 5}));
  EXPECT_EQ(pieces[0].form.terms, (Terms{{0, 2359312, 1}, {1, 20, 1}}));
  recorded[0].size += 512 - 272;
  EXPECT_EQ(find_pieces(recorded, kPieceCandidates)[0].samples, (Samples{1, 2, 5}));
}

// 1 MiB a sample, whatever the pixels; 400 bytes more at three shapes, another algorithm at (16, 128).
TEST(SizePieces, MayFollowAnotherProduct) {
  const auto pieces =
      find_pieces(piece_samples({4194704, 6292143, 8389008, 16777216, 33554432, 8389008}), kPieceCandidates);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].samples, (Samples{0, 2, 3, 4, 5}));
  EXPECT_EQ(pieces[0].form.terms, (Terms{{0, 400, 1}, {2, 1048576, 1}}));
}

TEST(SizePieces, TwoSamplesAreNone) {
  EXPECT_TRUE(find_pieces({piece_samples({1, 0, 0, 0, 0, 0})[0], piece_samples({0, 2, 0, 0, 0, 0})[1]},
                          kPieceCandidates)
                  .empty());
  EXPECT_TRUE(find_pieces({}, kPieceCandidates).empty());
}

}  // namespace
}  // namespace vramlab
