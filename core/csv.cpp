#include "core/csv.hpp"

#include <algorithm>

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
    CsvRecord record{.line = line_, .cells = {}, .closed = true};
    do {
      record.cells.push_back(cell(record.closed));
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
    skip_line();
    return true;
  }

 private:
  void skip_line() {
    next_ = std::min(text_.find('\n', next_), text_.size()) + 1;
    ++line_;
  }

  std::string cell(bool& closed) {
    while (!at_end() && (text_[next_] == ' ' || text_[next_] == '\t')) ++next_;
    std::string value;
    if (!at_end() && text_[next_] == '"') value = quoted(closed);
    return value + unquoted();  // behind quotes nothing but spaces in a good file
  }

  std::string unquoted() {
    const std::size_t end = std::min(text_.find_first_of(",\n", next_), text_.size());
    std::string_view value = text_.substr(next_, end - next_);
    next_ = end;
    const std::size_t last = value.find_last_not_of(" \t\r");
    return std::string(value.substr(0, last == std::string_view::npos ? 0 : last + 1));
  }

  std::string quoted(bool& closed) {
    std::string value;
    for (++next_; !at_end(); ++next_) {
      if (text_[next_] == '"') {
        ++next_;
        if (at_end() || text_[next_] != '"') return value;
      }
      if (text_[next_] == '\n') ++line_;
      value += text_[next_];
    }
    closed = false;
    return value;
  }

  std::string_view text_;
  std::size_t next_ = 0;
  std::uint32_t line_ = 1;
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
