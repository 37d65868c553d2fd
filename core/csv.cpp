#include "core/csv.hpp"

#include <algorithm>
#include <utility>

namespace vramlab {
namespace {

/// Walks over a text, record by record.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  [[nodiscard]] bool at_end() const { return next_ >= text_.size(); }

  CsvRecord record() {
    CsvRecord record{.line = line_, .cells = {}};
    const bool is_wide = next_ == 0 && (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"));
    if (is_wide) fail(record, 0, "the text is UTF-16 or UTF-32. Save the file as UTF-8.");
    do {
      record.cells.push_back(cell(record));
    } while (!at_end() && text_[next_] == ',' && (++next_, true));
    skip_line();
    return record;
  }

  /// Passes over an empty line or a comment; false if there is none here.
  bool skip_blank() {
    const std::size_t end = std::min(text_.find('\n', next_), text_.size());
    const std::string_view line = text_.substr(next_, end - next_);
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') return false;
    if (first != std::string_view::npos && lone_return(line) != std::string_view::npos) return false;
    skip_line();
    return true;
  }

 private:
  // Where a carriage return is that no line feed follows, with which old programs end their lines.
  static std::size_t lone_return(std::string_view line) {
    return line.substr(0, line.find_last_not_of('\r') + 1).find('\r');
  }

  void fail(CsvRecord& record, std::size_t at, const std::string& what) const {
    if (record.fault) return;
    record.fault = {line_, "column " + std::to_string(at - line_begin_ + 1) + ": " + what};
  }

  void skip_line() {
    next_ = std::min(text_.find('\n', next_), text_.size()) + 1;
    begin_line(next_);
  }

  void begin_line(std::size_t at) {
    ++line_;
    line_begin_ = at;
  }

  std::string cell(CsvRecord& record) {
    while (!at_end() && (text_[next_] == ' ' || text_[next_] == '\t')) ++next_;
    const bool is_quoted = !at_end() && text_[next_] == '"';
    const std::string value = is_quoted ? quoted(record) : std::string{};
    return value + unquoted(record, is_quoted);
  }

  // Behind quotes nothing but spaces, in a good file.
  std::string unquoted(CsvRecord& record, bool behind_quotes) {
    const std::size_t begin = next_;
    const std::size_t end = std::min(text_.find_first_of(",\n", next_), text_.size());
    std::string_view value = text_.substr(next_, end - next_);
    next_ = end;
    const std::size_t last = value.find_last_not_of(" \t\r");
    value = value.substr(0, last == std::string_view::npos ? 0 : last + 1);
    const std::size_t bad = behind_quotes ? 0 : value.find_first_of(kBad);
    if (value.empty() || bad == std::string_view::npos) return std::string{value};
    if (value[bad] == '\0') {
      fail(record, begin + bad, "a NUL byte. Save the file as UTF-8 text.");
    } else if (value[bad] == '\r') {
      fail(record, begin + bad, "a carriage return without a line feed. Save the file with line feeds.");
    } else {
      fail(record, begin + bad,
           "quotes around a part of a cell. Put the whole cell in quotes, and write a quote in it twice.");
    }
    return std::string{value};
  }

  std::string quoted(CsvRecord& record) {
    const std::size_t begin = next_;
    const auto [line, line_begin] = std::pair{line_, line_begin_};
    std::string value;
    for (++next_; !at_end(); ++next_) {
      if (text_[next_] == '"') {
        ++next_;
        if (at_end() || text_[next_] != '"') return value;
      }
      if (text_[next_] == '\0') fail(record, next_, "a NUL byte. Save the file as UTF-8 text.");
      if (text_[next_] == '\n') begin_line(next_ + 1);
      value += text_[next_];
    }
    if (!record.fault) {
      record.fault = {line,
                      "column " + std::to_string(begin - line_begin + 1) + ": a quoted cell never ends."};
    }
    return value;
  }

  static constexpr std::string_view kBad{"\"\r\0", 3};

  std::string_view text_;
  std::size_t next_ = 0;
  std::uint32_t line_ = 1;
  std::size_t line_begin_ = 0;  ///< in the text
};

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string{text};
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::vector<CsvRecord> csv_records(std::string_view text) {
  std::vector<CsvRecord> records;
  CsvReader reader(text);
  while (!reader.at_end()) {
    if (!reader.skip_blank()) records.push_back(reader.record());
  }
  return records;
}

}  // namespace vramlab
