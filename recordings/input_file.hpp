// Reading the files that users hand in, compressed or not, and tables in CSV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

namespace vramlab {

/// How many bytes a compressed file may unpack to: one that is read piece by piece, and one that is read
/// whole.
struct InflatedSizes {
  Bytes in_pieces = 4_GiB;
  Bytes whole = 512_MiB;
};

/// While it lives, every compressed file of the process may unpack to that much, and not to the usual sizes.
class InflationLimit {
 public:
  explicit InflationLimit(Bytes most);
  ~InflationLimit();
  InflationLimit(const InflationLimit&) = delete;
  InflationLimit& operator=(const InflationLimit&) = delete;

 private:
  InflatedSizes before_;
};

/// A file read piece by piece; gzip and zstd are recognised by their first bytes and unpacked on the way. It
/// may be a pipe: nothing is read twice.
class InputFile {
 public:
  /// Throws InputError if the file cannot be opened.
  explicit InputFile(const std::filesystem::path& file);
  /// What comes from elsewhere, such as standard input; `name` stands for the file.
  InputFile(std::istream& in, const std::string& name);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return file_; }
  [[nodiscard]] std::string name() const { return file_.string(); }

  /// The first 64 KiB, unpacked, or all of a shorter file; they are still to be read. To be called before
  /// anything is read; what follows invalidates the view.
  std::string_view beginning();
  /// The same: all of the file.
  std::string_view whole();

  /// Puts the next `size` bytes at `place`, or as many as are left, and returns how many those were.
  /// Throws InputError if a compressed file is damaged, or unpacks to more than is allowed.
  std::size_t read(char* place, std::size_t size);

  /// All that is left.
  std::string rest();

 private:
  void recognise_compression();
  std::size_t unpack(char* place, std::size_t size);
  void look_ahead(std::size_t size);
  [[noreturn]] void refuse_inflated(Bytes most) const;

  std::filesystem::path file_;
  std::string ahead_;      ///< unpacked, but not read yet
  std::size_t taken_ = 0;  ///< of these
  std::unique_ptr<std::istream> raw_;
  std::unique_ptr<std::istream> unpacked_;  ///< over `raw_`; none for a plain file
  Bytes inflated_ = 0;                      ///< bytes that came out of it
};

/// The whole content of a file, unpacked. Throws InputError if it cannot be opened or is damaged.
std::string read_input_file(const std::filesystem::path& file);

// A CSV file with a header line, read by the names of its columns.

/// Gathers what is wrong with the lines of a file, so that all of it is said at once: of the first 20.
class LineProblems {
 public:
  /// Does `work`, and keeps the problems of an InputError.
  template <class Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (const InputError& error) {
      problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
    }
  }

  /// Throws InputError if there are any; beyond 20 it says how many more in `file`.
  void throw_if_any(const std::string& file);

 private:
  std::vector<Problem> problems_;
};

/// Rows of cells. Errors name file, line and column.
class CsvTable {
 public:
  /// Reads a file, plain or compressed as input_file.hpp allows. Throws InputError with every line that has
  /// a fault (core/csv.hpp) or another number of cells than the header.
  explicit CsvTable(const std::filesystem::path& file);
  explicit CsvTable(InputFile& file);

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] bool has(std::string_view column) const;
  [[nodiscard]] const std::vector<std::string>& columns() const { return header_; }
  /// Throws InputError for columns that are not among `known`, and for one that is there twice.
  void require_columns(const std::vector<std::string>& known) const;
  /// The cell; empty if the file has no such column and `required` is false. Throws InputError otherwise, and
  /// where the file has that column twice.
  [[nodiscard]] std::string_view text(std::size_t row, std::string_view column, bool required = true) const;
  /// The cell of the column at this place of columns(), for files whose columns may share a name.
  [[nodiscard]] std::string_view text_at(std::size_t row, std::size_t column) const {
    return rows_[row].cells[column];
  }
  // What a cell says. Each throws InputError for anything else.

  /// A number from 0 to 10^15.
  [[nodiscard]] double number(std::size_t row, std::string_view column) const;
  [[nodiscard]] double number_or(std::size_t row, std::string_view column, double otherwise) const;
  /// A whole number of that range, which begins at 0 or above.
  [[nodiscard]] std::int64_t whole(std::size_t row, std::string_view column, std::int64_t low,
                                   std::int64_t high) const;
  /// Seconds from 0 to 10^9: 31 years.
  [[nodiscard]] SimTime seconds(std::size_t row, std::string_view column) const;
  /// A size up to 1 TiB, above any card there is.
  [[nodiscard]] Bytes size(std::size_t row, std::string_view column) const;
  /// Throws InputError at this cell.
  [[noreturn]] void wrong(std::size_t row, std::string_view column, const std::string& what) const;

 private:
  void read(InputFile& file);
  [[nodiscard]] std::size_t find(std::string_view column) const;
  std::string file_;
  std::vector<std::string> header_;
  std::vector<std::string> twice_;  ///< columns of which it has several
  std::vector<CsvRecord> rows_;
};

}  // namespace vramlab
