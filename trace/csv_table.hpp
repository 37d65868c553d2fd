// A CSV file with a header line, read by the names of its columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/csv.hpp"

namespace vramlab {

/// Whether a file's own name says that it is CSV: it ends in .csv, .csv.gz or .csv.zst.
bool is_csv(const std::filesystem::path& file);

/// Rows of cells. Errors name file, line and column.
class CsvTable {
 public:
  /// Reads a file, plain or compressed as input_file.hpp allows. Throws InputError if a line has another
  /// number of cells than the header.
  explicit CsvTable(const std::filesystem::path& file);

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] bool has(std::string_view column) const;
  [[nodiscard]] const std::vector<std::string>& columns() const { return header_; }
  /// The cell; empty if the file has no such column and `required` is false. Throws InputError otherwise.
  [[nodiscard]] std::string_view text(std::size_t row, std::string_view column, bool required = true) const;
  /// The cell of the column at this place of columns(), for files whose columns may share a name.
  [[nodiscard]] std::string_view text_at(std::size_t row, std::size_t column) const {
    return rows_[row].cells[column];
  }
  /// A number from 0 to 10^15. Throws InputError for anything else.
  [[nodiscard]] double number(std::size_t row, std::string_view column) const;
  [[nodiscard]] double number_or(std::size_t row, std::string_view column, double otherwise) const;
  /// Throws InputError at this cell.
  [[noreturn]] void wrong(std::size_t row, std::string_view column, const std::string& what) const;

 private:
  [[nodiscard]] std::size_t find(std::string_view column) const;
  std::string file_;
  std::vector<std::string> header_;
  std::vector<CsvRecord> rows_;
};

}  // namespace vramlab
