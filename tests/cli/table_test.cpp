#include "report/table.hpp"

#include <gtest/gtest.h>

#include "sim/core/error.hpp"

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

TEST(Table, ARowMustFit) {
  Table table{{{"a"}}};
  EXPECT_THROW(table.add_row({"1", "2"}), InternalError);
}

}  // namespace
}  // namespace vramlab
