#include "core/units.hpp"

#include <gtest/gtest.h>

namespace vramlab {
namespace {

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_bytes("24GiB"), 24_GiB);
  EXPECT_EQ(parse_bytes("512 MiB"), 512_MiB);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1536_MiB);
  EXPECT_EQ(parse_bytes("64KiB"), 65536u);
  EXPECT_EQ(parse_bytes("1048576"), 1_MiB);
  EXPECT_EQ(parse_bytes("100B"), 100u);
  EXPECT_EQ(parse_bytes("0"), 0u);
}

// PyTorch prints two decimals; what stands between two bytes is rounded to the nearer one.
TEST(Units, ReadsSizesAsPyTorchPrintsThem) {
  EXPECT_EQ(parse_bytes("512.00 MiB"), 512_MiB);
  EXPECT_EQ(parse_bytes("7.93GiB"), 8'514'772'664U);  // 8,514,772,664.32
  EXPECT_EQ(parse_bytes("7.93 GiB"), 8'514'772'664U);
  EXPECT_EQ(parse_bytes("22.03 GiB"), 23'654'532'383U);  // 23,654,532,382.72
  EXPECT_EQ(parse_bytes("910.45 MiB"), 954'676'019U);    // 954,676,019.2
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const char* text : {"", "GiB", "12 gigs", "12GB", "-1", "-1GiB", "1e3", "nan", "inf", "0.3B", "1GiB ",
                           "99999999TiB", "0x10"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Units, PrintsSizesInTheLargestUnitThatFits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(20_MiB), "20.0 MiB");
  EXPECT_EQ(format_bytes(12_GiB + 512_MiB), "12.5 GiB");
}

TEST(Units, RoundsUpToAUnit) {
  EXPECT_EQ(round_up(1, 512), 512u);
  EXPECT_EQ(round_up(512, 512), 512u);
  EXPECT_EQ(round_up(513, 512), 1024u);
}

TEST(Units, TurnsSecondsIntoNanoseconds) {
  EXPECT_EQ(from_seconds(1.5), SimTime{1'500'000'000});
  EXPECT_DOUBLE_EQ(to_seconds(SimTime{250'000'000}), 0.25);
}

}  // namespace
}  // namespace vramlab
