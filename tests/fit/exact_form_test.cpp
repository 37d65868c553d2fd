#include <array>

#include <gtest/gtest.h>

#include "fit/size_laws.hpp"

namespace vramlab {
namespace {

// Products 1, b·s, b, s at the five shapes of the recorded LSTM (b, s).
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 5> kShapes{
    {{4, 32}, {16, 32}, {16, 128}, {64, 64}, {32, 256}}};
constexpr std::array<std::uint32_t, 4> kCandidates{0, 1, 2, 3};

std::vector<SizeSample> samples(const std::vector<Bytes>& sizes) {
  std::vector<SizeSample> result;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto [b, s] = kShapes[i];
    result.push_back({{1, b * s, b, s}, sizes[i]});
  }
  return result;
}

// The recorded sizes are 75,497,728 + 81,928·b + 22,528·b·s at all five shapes.
TEST(ExactForm, FindsTheWorkspaceOfTheRecordedLstm) {
  const auto form =
      find_exact_form(samples({78709024, 88342912, 122945920, 173015808, 262668800}), kCandidates);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->terms, (std::vector<SizeTerm>{{0, 75497728, 1}, {1, 22528, 1}, {2, 81928, 1}}));
}

TEST(ExactForm, PrefersTheFewestTermsThenTheLikeliest) {
  EXPECT_EQ(find_exact_form(samples({80000, 80000}), kCandidates)->terms,
            (std::vector<SizeTerm>{{0, 80000, 1}}));
  // at (16, 32) and (16, 128) a size of 4·b·s is also 64·s
  std::vector<SizeSample> two = samples({0, 2048, 8192});
  two.erase(two.begin());
  EXPECT_EQ(find_exact_form(two, kCandidates)->terms, (std::vector<SizeTerm>{{1, 4, 1}}));
}

TEST(ExactForm, FindsFractions) {
  EXPECT_EQ(find_exact_form(samples({16, 64, 256, 512}), kCandidates)->terms,
            (std::vector<SizeTerm>{{1, 1, 8}}));
}

TEST(ExactForm, NeedsOneMoreSampleThanTerms) {
  EXPECT_FALSE(find_exact_form(samples({5767424}), kCandidates));
  EXPECT_FALSE(find_exact_form(samples({5767424, 23068928}), kCandidates));  // 256 + 45056·b·s, two samples
  EXPECT_TRUE(find_exact_form(samples({5767424, 23068928, 92274944}), kCandidates));
}

TEST(ExactForm, OneByteOffIsNoForm) {
  EXPECT_FALSE(find_exact_form(samples({5767424, 23068928, 92274945, 184549632, 369099008}), kCandidates));
}

TEST(ExactForm, TwoSizesAtOnePlaceHaveNone) {
  std::vector<SizeSample> both = samples({1024, 4096});
  both.push_back(both[0]);
  both.back().size = 2048;
  EXPECT_FALSE(find_exact_form(both, kCandidates));
}

}  // namespace
}  // namespace vramlab
