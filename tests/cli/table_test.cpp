#include "report/table.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

Table example() {
  Table table{{{"policy", Table::Align::left}, {"peak"}}};
  table.add_row({"a|b", "93.3 %"});
  table.add_row({"±, \"c\"", "1 %"});
  return table;
}

TEST(Table, AlignsTextByColumn) {
  EXPECT_EQ(example().format(TableFormat::text),
            "policy    peak\n"
            "a|b     93.3 %\n"
            "±, \"c\"     1 %\n");
}

TEST(Table, EscapesMarkdown) {
  EXPECT_EQ(example().format(TableFormat::markdown),
            "| policy | peak |\n| --- | ---: |\n| a\\|b | 93.3 % |\n| ±, \"c\" | 1 % |\n");
}

TEST(Table, QuotesCsv) {
  EXPECT_EQ(example().format(TableFormat::csv), "policy,peak\na|b,93.3 %\n\"±, \"\"c\"\"\",1 %\n");
}

TEST(Table, WhatIsWiderThanATerminalFollowsBelow) {
  Table table{{{"name", Table::Align::left}, {std::string(60, 'x')}, {std::string(40, 'y')}}};
  table.add_row({"a", "1", "2"});
  EXPECT_EQ(table.format(TableFormat::text), "name  " + std::string(60, 'x') + "\na     " +
                                                 std::string(59, ' ') + "1\n\nname  " + std::string(40, 'y') +
                                                 "\na     " + std::string(39, ' ') + "2\n");
}

TEST(Table, LongWordsAreBrokenIntoLines) {
  Table table{{{std::string(60, 'x')}, {"why", Table::Align::left}}};
  std::string words;
  for (int i = 0; i < 12; ++i) words += (i ? " four" : "four");
  table.add_row({"1", words});
  const std::string text = table.format(TableFormat::text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 100u);
    begin = end + 1;
  }
  EXPECT_NE(text.find("1  four four four four four four four\n" + std::string(62, ' ') + "four"),
            std::string::npos)
      << text;
}

// Words that would fit alone but not beside all others take lines of their own part.
TEST(Table, WordsAreBrokenInWhatFollowsBelowToo) {
  Table table{{{"name", Table::Align::left}, {std::string(90, 'x')}, {"why", Table::Align::left}}};
  table.add_row({"a", "1", std::string(60, 'y') + " " + std::string(60, 'z')});
  EXPECT_EQ(table.format(TableFormat::text),
            "name  " + std::string(90, 'x') + "\na     " + std::string(89, ' ') + "1\n\nname  why\na     " +
                std::string(60, 'y') + "\n      " + std::string(60, 'z') + "\n");
}

TEST(Table, ATotalStandsBelowALine) {
  Table table{{{"bytes"}, {"what", Table::Align::left}}};
  table.add_row({"3", "a"});
  table.add_total({"3", "total"});
  EXPECT_EQ(table.format(TableFormat::text), "bytes  what\n    3  a\n------------\n    3  total\n");
  EXPECT_EQ(table.format(TableFormat::csv), "bytes,what\n3,a\n3,total\n");
}

TEST(Table, ARowMustFit) {
  Table table{{{"a"}}};
  EXPECT_THROW(table.add_row({"1", "2"}), InternalError);
}

}  // namespace
}  // namespace vramlab
