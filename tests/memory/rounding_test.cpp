#include "sim/memory/caching/rounding.hpp"

#include <string>

#include <gtest/gtest.h>

namespace vramlab {
namespace {

struct Case {
  Bytes request;
  const char* conf;
  Bytes rounded;
  bool small;
  Bytes segment;
};

class RoundingTable : public testing::TestWithParam<Case> {};

TEST_P(RoundingTable, GivesBlockPoolAndSegment) {
  const Case& c = GetParam();
  const AllocatorSettings settings = parse_allocator_settings(c.conf);
  EXPECT_EQ(rounded_size(c.request, settings), c.rounded);
  EXPECT_EQ(is_small(c.rounded), c.small);
  EXPECT_EQ(segment_size(c.rounded, settings), c.segment);
}

// The table of R1.7 and case K1-01.
INSTANTIATE_TEST_SUITE_P(
    Defaults, RoundingTable,
    testing::Values(Case{1, "", 512, true, 2_MiB}, Case{512, "", 512, true, 2_MiB},
                    Case{513, "", 1024, true, 2_MiB}, Case{1024, "", 1024, true, 2_MiB},
                    Case{1048576, "", 1048576, true, 2_MiB}, Case{1048577, "", 1049088, false, 20_MiB},
                    Case{10485248, "", 10485248, false, 20_MiB}, Case{10485249, "", 10485760, false, 10_MiB},
                    Case{10485759, "", 10485760, false, 10_MiB}, Case{10485760, "", 10485760, false, 10_MiB},
                    Case{10485761, "", 10486272, false, 12_MiB}, Case{20971521, "", 20972032, false, 22_MiB},
                    Case{11796480, "", 11796480, false, 12_MiB}));

// R1.3, R1.4
INSTANTIATE_TEST_SUITE_P(
    Divisions, RoundingTable,
    testing::Values(Case{2000, "roundup_power2_divisions:4", 2048, true, 2_MiB},  // ≤ 512·4: plain rounding
                    Case{9000, "roundup_power2_divisions:4", 10240, true, 2_MiB},
                    Case{1300000, "roundup_power2_divisions:4", 1310720, false, 20_MiB},
                    Case{1000000, "roundup_power2_divisions:2", 1048576, true, 2_MiB},
                    Case{500_MiB, "roundup_power2_divisions:2", 512_MiB, false, 512_MiB},
                    Case{1_GiB, "roundup_power2_divisions:2", 1_GiB, false, 1_GiB},
                    Case{84_MiB, "roundup_power2_divisions:4", 96_MiB, false, 96_MiB},  // K1-03
                    Case{84_MiB, "roundup_power2_divisions:1", 84_MiB, false, 84_MiB}));

// K1-03: the list form.
constexpr const char* kList = "roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]";
INSTANTIATE_TEST_SUITE_P(List, RoundingTable,
                         testing::Values(Case{84_MiB, kList, 88_MiB, false, 88_MiB},
                                         Case{400_MiB, kList, 512_MiB, false, 512_MiB}));

// R1.5, note: key k governs [k, 2k), and X13.
constexpr const char* kUpperKeys = "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]";
INSTANTIATE_TEST_SUITE_P(ListKeys, RoundingTable,
                         testing::Values(Case{300_MiB, kUpperKeys, 300_MiB, false, 300_MiB},
                                         Case{600_MiB, kUpperKeys, 768_MiB, false, 768_MiB},
                                         Case{1229_MiB, kUpperKeys, 1280_MiB, false, 1280_MiB},
                                         Case{2356_MiB, kUpperKeys, 2560_MiB, false, 2560_MiB}));

// R1.7: the option moves the segment's size, not the boundary.
INSTANTIATE_TEST_SUITE_P(LargeSegments, RoundingTable,
                         testing::Values(Case{3_MiB, "large_segment_size_mb:64", 3_MiB, false, 64_MiB},
                                         Case{10_MiB, "large_segment_size_mb:64", 10_MiB, false, 10_MiB},
                                         Case{1_MiB, "large_segment_size_mb:64", 1_MiB, true, 2_MiB}));

// R1.4
TEST(RoundingDivisions, AreChosenByThePowerOfTwoOfTheSize) {
  AllocatorSettings settings;
  for (std::size_t i = 0; i < 16; ++i) settings.roundup_power2_divisions[i] = i;
  EXPECT_EQ(roundup_divisions(1, settings), 0u);
  EXPECT_EQ(roundup_divisions(2_MiB - 1, settings), 0u);
  EXPECT_EQ(roundup_divisions(2_MiB, settings), 1u);
  EXPECT_EQ(roundup_divisions(4_MiB - 1, settings), 1u);
  EXPECT_EQ(roundup_divisions(256_MiB, settings), 8u);
  EXPECT_EQ(roundup_divisions(32_GiB - 1, settings), 14u);
  EXPECT_EQ(roundup_divisions(32_GiB, settings), 15u);
  EXPECT_EQ(roundup_divisions(1024_GiB, settings), 15u);
}

// R1.2: whatever the settings, a block holds its request and is a multiple of 512.
TEST(Rounding, NeverGivesLessThanAskedFor) {
  for (const char* conf :
       {"", "roundup_power2_divisions:2", "roundup_power2_divisions:16", kList, kUpperKeys}) {
    const AllocatorSettings settings = parse_allocator_settings(conf);
    for (Bytes size = 1; size < 8_GiB; size = size * 5 / 4 + 1) {
      const Bytes rounded = rounded_size(size, settings);
      EXPECT_GE(rounded, size) << conf;
      EXPECT_EQ(rounded % 512, 0u) << conf << ' ' << size;
      EXPECT_GE(segment_size(rounded, settings), rounded);
    }
  }
}

}  // namespace
}  // namespace vramlab
