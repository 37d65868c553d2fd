// A table for people: text for terminals, Markdown for pull requests, CSV for spreadsheets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vramlab {

enum class TableFormat : std::uint8_t { text, markdown, csv };

/// Rows of cells under named columns.
class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    Column(std::string title, Align where = Align::right) : name(std::move(title)), align(where) {}
    Column(const char* title, Align where = Align::right) : name(title), align(where) {}

    std::string name;
    Align align;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row. Throws InternalError if it has another number of cells than there are columns.
  void add_row(std::vector<std::string> cells);

  /// Adds the row that sums up the others; it stands below a line of its own in text.
  void add_total(std::vector<std::string> cells);

  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<std::vector<std::string>>& rows() const { return rows_; }

  /// The whole table, each line ended by a newline. Text stays within 100 columns if its words
  /// allow it: columns of words are broken into lines, and what still does not fit follows below, behind the
  /// first column again.
  [[nodiscard]] std::string format(TableFormat format) const;

 private:
  using Range = std::pair<std::size_t, std::size_t>;
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::vector<std::size_t> narrowed() const;
  [[nodiscard]] std::string format_text() const;
  [[nodiscard]] std::string text_of(Range columns, const std::vector<std::size_t>& widths) const;
  [[nodiscard]] std::string format_markdown() const;
  [[nodiscard]] std::string format_csv() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  bool has_total_ = false;  ///< the last row
};

/// A column of words; figures stand on the right.
inline Table::Column left(std::string name) { return {std::move(name), Table::Align::left}; }

/// "text", "md" or "csv"; throws InputError for anything else.
TableFormat parse_table_format(std::string_view name);

/// The number of character cells `text` takes on a terminal (UTF-8, one cell a code point).
std::size_t display_width(std::string_view text);

}  // namespace vramlab
