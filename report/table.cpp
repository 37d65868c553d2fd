#include "report/table.hpp"

#include <algorithm>

#include "sim/core/csv.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

std::string pad(const std::string& text, std::size_t width, Table::Align align) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return align == Table::Align::left ? text + space : space + text;
}

void trim_right(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) throw InternalError("a table row has the wrong number of cells");
  rows_.push_back(std::move(cells));
}

std::string Table::format(TableFormat format) const {
  switch (format) {
    case TableFormat::markdown:
      return format_markdown();
    case TableFormat::csv:
      return format_csv();
    case TableFormat::text:
      break;
  }
  return format_text();
}

std::string Table::format_text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].name);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      line += pad(cell(c), widths[c], columns_[c].align);
    }
    trim_right(line);
    text += line + '\n';
  };
  add_line([&](std::size_t c) { return columns_[c].name; });
  for (const auto& row : rows_) add_line([&](std::size_t c) { return row[c]; });
  return text;
}

std::string Table::format_markdown() const {
  std::string head = "|";
  std::string rule = "|";
  for (const Column& column : columns_) {
    head += ' ' + column.name + " |";
    rule += column.align == Align::left ? " --- |" : " ---: |";
  }
  std::string text = head + '\n' + rule + '\n';
  for (const auto& row : rows_) {
    text += '|';
    for (const std::string& cell : row) {
      text += ' ';
      for (const char c : cell) text += c == '|' ? "\\|" : std::string{c};
      text += " |";
    }
    text += '\n';
  }
  return text;
}

std::string Table::format_csv() const {
  std::string text;
  for (std::size_t c = 0; c < columns_.size(); ++c) text += (c ? "," : "") + csv_cell(columns_[c].name);
  text += '\n';
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) text += (c ? "," : "") + csv_cell(row[c]);
    text += '\n';
  }
  return text;
}

TableFormat parse_table_format(std::string_view name) {
  if (name == "text") return TableFormat::text;
  if (name == "md") return TableFormat::markdown;
  if (name == "csv") return TableFormat::csv;
  throw InputError("--format", "\"" + std::string{name} + "\" is not a table format. Write text, md or csv.");
}

}  // namespace vramlab
