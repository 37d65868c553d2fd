// Texts as RFC 4180 has them, and what it does not allow.
#include "core/csv.hpp"

#include <gtest/gtest.h>

namespace vramlab {
namespace {

using namespace std::string_literals;

TEST(Csv, ReadsCellsOfBothKindsAndLineEndsOfBothKinds) {
  const auto records = csv_records("\xEF\xBB\xBF# made by hand\na, b \r\n\"x, \"\"y\"\"\n2\" ,\n");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].line, 2U);
  EXPECT_EQ(records[0].cells, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(records[1].cells, (std::vector<std::string>{"x, \"y\"\n2", ""}));
  EXPECT_FALSE(records[0].fault || records[1].fault);
}

/// A text whose first fault lies at that line and column.
struct Faulty {
  std::string text;
  std::uint32_t line;
  std::string what;
};

TEST(Csv, SaysWhereATextIsNotCsv) {
  for (const Faulty& one : {
           Faulty{"a,b\n0,\"100\"7\n", 2, "column 8: quotes around a part of a cell."},
           Faulty{"a,b\n0,\"\"7\n", 2, "column 5: quotes around a part of a cell."},
           Faulty{"a\n1\"00\n", 2, "column 2: quotes around a part of a cell."},
           Faulty{"a,b\n\n0,\"x\ny", 3, "column 3: a quoted cell never ends."},
           Faulty{"a,b\r0,1\r", 1, "column 4: a carriage return without a line feed."},
           Faulty{"# one\ra\r0\r", 1, "column 6: a carriage return without a line feed."},
           Faulty{"a\n1\0\n"s, 2, "column 2: a NUL byte."},
           Faulty{"a\n\"1\n\0\"\n"s, 3, "column 1: a NUL byte."},
           Faulty{"\xFF\xFE"
                  "a\0\n\0"s,
                  1, "column 1: the text is UTF-16"},
           Faulty{"\xFE\xFF\0a\0\n"s, 1, "column 1: the text is UTF-16"},
       }) {
    SCOPED_TRACE(one.what);
    const auto records = csv_records(one.text);
    const auto bad = std::find_if(records.begin(), records.end(), [](const CsvRecord& r) { return r.fault; });
    ASSERT_NE(bad, records.end());
    EXPECT_EQ(bad->fault->line, one.line);
    EXPECT_EQ(bad->fault->what.substr(0, one.what.size()), one.what);
  }
}

}  // namespace
}  // namespace vramlab
