// CSV as RFC 4180 has it: writing a cell, and reading records with the line each begins in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

/// `text` as a CSV cell (RFC 4180): in quotes if it holds a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

/// One record of a CSV text.
struct CsvRecord {
  std::uint32_t line = 0;  ///< of its beginning, from 1
  std::vector<std::string> cells;
  bool closed = true;  ///< false if a quoted cell never ends
};

/// All records, without empty lines and lines that begin with #. Spaces around unquoted cells are dropped; a
/// byte order mark and both kinds of line ends are understood.
std::vector<CsvRecord> csv_records(std::string_view text);

}  // namespace vramlab
