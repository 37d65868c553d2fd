// CSV as RFC 4180 has it: writing a cell, and reading records with the line each begins in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

/// `text` as a CSV cell (RFC 4180): in quotes if it holds a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

/// What keeps a record from being read as its author meant it.
struct CsvFault {
  std::uint32_t line = 0;  ///< from 1
  std::string what;  ///< with the column, counted in bytes from 1: "column 7: a quoted cell never ends."
};

/// One record of a CSV text.
struct CsvRecord {
  std::uint32_t line = 0;  ///< of its beginning, from 1
  std::vector<std::string> cells;
  std::optional<CsvFault> fault{};  ///< the first one; the cells then are not to be used
};

/// All records, without empty lines and lines that begin with #. Spaces around unquoted cells are dropped; a
/// UTF-8 byte order mark and line ends with and without a carriage return are understood. Faults are a quoted
/// cell that never ends, a quote inside a cell that is not written as RFC 4180 has it, a carriage return
/// alone, a NUL byte, and a text in UTF-16 or UTF-32.
std::vector<CsvRecord> csv_records(std::string_view text);

}  // namespace vramlab
