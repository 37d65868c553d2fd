#include "report/table.hpp"

#include <algorithm>

#include "core/csv.hpp"
#include "core/error.hpp"

namespace vramlab {
namespace {

std::string pad(const std::string& text, std::size_t width, Table::Align align) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return align == Table::Align::left ? text + space : space + text;
}

constexpr std::size_t kWidest = 100;         // columns of a terminal
constexpr std::size_t kBetween = 2;          // spaces between columns
constexpr std::size_t kNarrowestWords = 12;  // below this, lines of words are hard to read

// At spaces; a word that is longer than a line stays whole.
std::vector<std::string> broken(const std::string& text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (begin > 0 && display_width(lines.back()) + 1 + display_width(word) > width) {
      lines.push_back(word);
    } else {
      lines.back() += (begin == 0 ? "" : " ") + word;
    }
    begin = end + 1;
  }
  return lines;
}

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& word : broken(text, 0)) longest = std::max(longest, display_width(word));
  return longest;
}

std::size_t sum_of(const std::vector<std::size_t>& widths) {
  std::size_t sum = widths.empty() ? 0 : kBetween * (widths.size() - 1);
  for (const std::size_t width : widths) sum += width;
  return sum;
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

void Table::add_total(std::vector<std::string> cells) {
  add_row(std::move(cells));
  has_total_ = true;
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

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].name);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  return widths;
}

// The widths with columns of words made narrower, the widest first, until all fit or none can be.
std::vector<std::size_t> Table::narrowed() const {
  std::vector<std::size_t> widths = this->widths();
  std::vector<std::size_t> narrowest = widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].align != Align::left) continue;
    std::size_t least = std::max(kNarrowestWords, longest_word(columns_[c].name));
    for (const auto& row : rows_) least = std::max(least, longest_word(row[c]));
    narrowest[c] = std::min(widths[c], least);
  }
  while (sum_of(widths) > kWidest) {
    std::size_t widest = widths.size();
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const bool can = widths[c] > narrowest[c];
      if (can && (widest == widths.size() || widths[c] > widths[widest])) widest = c;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::format_text() const {
  const std::vector<std::size_t> narrow = narrowed();
  const std::size_t count = columns_.size();
  if (sum_of(narrow) <= kWidest || count < 2) return text_of({1, count}, narrow);
  const std::size_t room = kWidest - std::min(kWidest, narrow[0] + kBetween);  // behind the first column
  std::vector<std::size_t> widths = this->widths();
  for (std::size_t c = 0; c < count; ++c)
    widths[c] = std::clamp(widths[c], narrow[c], c == 0 ? narrow[c] : std::max(narrow[c], room));
  std::string text;
  for (std::size_t begin = 1; begin < count;) {
    std::size_t width = widths[0];
    std::size_t end = begin;
    while (end < count && (end == begin || width + kBetween + widths[end] <= kWidest)) {
      width += kBetween + widths[end++];
    }
    if (!text.empty()) text += '\n';
    text += text_of({begin, end}, widths);
    begin = end;
  }
  return text;
}

// The first column, and those of the range; cells of words take as many lines as they need.
std::string Table::text_of(Range columns, const std::vector<std::size_t>& widths) const {
  std::vector<std::size_t> shown{0};
  for (std::size_t c = columns.first; c < columns.second; ++c) shown.push_back(c);
  std::string text;
  const auto add_row = [&](const auto& cell) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (const std::size_t c : shown) {
      const bool fits = display_width(cell(c)) <= widths[c];
      cells.push_back(fits ? std::vector<std::string>{cell(c)} : broken(cell(c), widths[c]));
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t l = 0; l < lines; ++l) {
      std::string line;
      for (std::size_t i = 0; i < shown.size(); ++i) {
        if (i > 0) line += std::string(kBetween, ' ');
        line += pad(l < cells[i].size() ? cells[i][l] : "", widths[shown[i]], columns_[shown[i]].align);
      }
      trim_right(line);
      text += line + '\n';
    }
  };
  add_row([&](std::size_t c) { return columns_[c].name; });
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (has_total_ && r + 1 == rows_.size()) {
      std::size_t width = 0;
      for (const std::size_t c : shown) width += widths[c] + (c > 0 ? kBetween : 0);
      text += std::string(std::min(width, kWidest), '-') + '\n';
    }
    add_row([&](std::size_t c) { return rows_[r][c]; });
  }
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
