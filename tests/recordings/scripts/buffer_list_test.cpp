// Lists of buffers: what is read, what is refused and where.
#include "recordings/scripts/buffer_list.hpp"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/open.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;

BufferList list_of(const std::string& text) {
  std::istringstream in{text};
  InputFile file{in, "b.csv"};
  return read_buffer_list(file);
}

std::vector<std::string> refusals(const std::string& text) {
  try {
    list_of(text);
  } catch (const InputError& error) {
    std::vector<std::string> all;
    for (const Problem& problem : error.problems()) all.push_back(problem.where + ": " + problem.what);
    return all;
  }
  return {};
}

TEST(BufferList, IsReadByItsColumns) {
  const BufferList list = list_of("upper,size,id,lower\n12,4096,x,-3\n2,0,y,1\n");

  EXPECT_THAT(list.ids, ElementsAre("x", "y"));
  EXPECT_THAT(list.buffers, ElementsAre(Buffer{-3, 12, 4096}, Buffer{1, 2, 0}));
  EXPECT_TRUE(list.offsets.empty());
}

TEST(BufferList, MayBeAPlan) {
  const std::string text = "id,lower,upper,size,offset\n\"a,b\",0,1,5,7\n";
  EXPECT_THAT(list_of(text).offsets, ElementsAre(7));
  EXPECT_EQ(buffer_list_text(list_of(text)), text);
}

TEST(BufferList, IsKnownByItsColumns) {
  std::istringstream in{"id,lower,upper,size\n1,0,1,5\n"};
  InputFile file{in, "anything"};
  EXPECT_EQ(kind_of(file), FileKind::buffer_list);
}

TEST(BufferList, RefusesEveryBadCellWithItsLine) {
  EXPECT_THAT(
      refusals(
          "id,lower,upper,size\n1,0,1,-5\n2,5,5,1\n3,0,1,x\n4,0.5,1,1\n5,,1,1\n6,0,1,9223372036854775808\n"
          "7,0,9223372036854775808,1\n8,0,1,1\n8,0,1,1\n,0,1,1\n"),
      ElementsAre("b.csv:2: size \"-5\" is not a whole number of bytes from 0 to 2^62.",
                  "b.csv:3: upper \"5\" is not above lower, which is 5.",
                  "b.csv:4: size \"x\" is not a whole number of bytes from 0 to 2^62.",
                  "b.csv:5: lower \"0.5\" is not a whole number from -2^63 to 2^63 - 1.",
                  "b.csv:6: lower \"\" is not a whole number from -2^63 to 2^63 - 1.",
                  "b.csv:7: size \"9223372036854775808\" is not a whole number of bytes from 0 to 2^62.",
                  "b.csv:8: upper \"9223372036854775808\" is not a whole number from -2^63 to 2^63 - 1.",
                  "b.csv:10: id \"8\" is there twice.", "b.csv:11: id \"\" is empty."));
}

TEST(BufferList, RefusesMoreThanCanBeAddedUp) {
  EXPECT_THAT(refusals("id,lower,upper,size\n1,0,1,4611686018427387904\n2,7,8,1\n"),
              ElementsAre("b.csv:3: size \"1\" makes more than 2^62 bytes of all buffers."));
}

TEST(BufferList, RefusesOtherTables) {
  EXPECT_THAT(refusals("id,lower,upper\n1,0,1\n"),
              ElementsAre("b.csv:1: has no column \"size\". A list of buffers begins with the header "
                          "id,lower,upper,size"));
  EXPECT_THAT(refusals("id,lower,upper,size\n"), ElementsAre("b.csv: holds no buffers."));
  EXPECT_THAT(refusals("id,lower,upper,size\n1,0,1\n"), testing::SizeIs(1));
  EXPECT_THAT(refusals("id,lower,upper,size,colour\n1,0,1,5,red\n"), testing::SizeIs(1));
}

}  // namespace
}  // namespace vramlab
