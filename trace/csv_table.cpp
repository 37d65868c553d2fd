#include "trace/csv_table.hpp"

#include <algorithm>
#include <charconv>

#include "sim/core/error.hpp"
#include "trace/input_file.hpp"

namespace vramlab {

bool is_csv(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".csv") || name.ends_with(".csv.gz") || name.ends_with(".csv.zst");
}

CsvTable::CsvTable(const std::filesystem::path& file) : file_(file.string()) {
  for (CsvRecord& record : csv_records(read_input_file(file))) {
    const std::string place = file_ + ":" + std::to_string(record.line);
    if (!record.closed) throw InputError(place, "a quoted cell never ends.");
    if (header_.empty()) {
      header_ = std::move(record.cells);
    } else if (record.cells.size() == header_.size()) {
      rows_.push_back(std::move(record));
    } else {
      throw InputError(place, "has " + std::to_string(record.cells.size()) + " cells where the header has " +
                                  std::to_string(header_.size()) + ".");
    }
  }
  if (header_.empty()) throw InputError(file_, "is empty; a header line is expected.");
}

std::size_t CsvTable::find(std::string_view column) const {
  return static_cast<std::size_t>(std::find(header_.begin(), header_.end(), column) - header_.begin());
}

bool CsvTable::has(std::string_view column) const { return find(column) < header_.size(); }

std::string_view CsvTable::text(std::size_t row, std::string_view column, bool required) const {
  const std::size_t at = find(column);
  if (at < header_.size()) return rows_[row].cells[at];
  if (!required) return {};
  throw InputError(file_ + ":1", "has no column \"" + std::string(column) + "\".");
}

double CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string_view cell = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size() || !(value >= 0) || value > 1e15) {
    wrong(row, column, "is no number of at least 0.");
  }
  return value;
}

double CsvTable::number_or(std::size_t row, std::string_view column, double otherwise) const {
  return text(row, column, false).empty() ? otherwise : number(row, column);
}

void CsvTable::wrong(std::size_t row, std::string_view column, const std::string& what) const {
  throw InputError(file_ + ":" + std::to_string(rows_[row].line),
                   std::string(column) + " \"" + std::string(text(row, column, false)) + "\" " + what);
}

}  // namespace vramlab
