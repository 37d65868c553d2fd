#include "recordings/input_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include "core/error.hpp"
#include "core/records/field.hpp"

namespace vramlab {
namespace {

namespace io = boost::iostreams;
using namespace std::string_view_literals;

constexpr std::string_view kGzip = "\x1f\x8b"sv;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd"sv;
constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr std::size_t kBeginning = std::size_t{1} << 16;

// Of cells in a table: the ranges that scenarios have for the same (lab/scenario/cards.hpp).
constexpr double kMostSeconds = 1e9;
constexpr Bytes kMostBytes = 1024_GiB;

template <class Filter>
std::unique_ptr<std::istream> unpacking(std::istream& raw, const Filter& filter) {
  auto in = std::make_unique<io::filtering_istream>();
  in->push(filter, std::streamsize{kPiece});
  in->push(raw, std::streamsize{kPiece});
  in->exceptions(std::ios::badbit);  // else a damaged file looks like its end
  return in;
}

// Readers are many and deep; what one may unpack is said once, for the process.
std::atomic<Bytes> most_in_pieces{InflatedSizes{}.in_pieces};
std::atomic<Bytes> most_whole{InflatedSizes{}.whole};

// Some libraries read a file in pieces of 4 KiB unless told otherwise.
std::unique_ptr<std::istream> opened(const std::filesystem::path& file) {
  auto in = std::make_unique<std::ifstream>();
  in->rdbuf()->pubsetbuf(nullptr, std::streamsize{kPiece});
  in->open(file, std::ios::binary);
  return in;
}

// A pipe cannot go back to its first bytes.
std::unique_ptr<std::istream> content_of(std::istream& in) {
  auto whole = std::make_unique<std::stringstream>();
  *whole << in.rdbuf();
  whole->clear();  // of an empty one
  return whole;
}

}  // namespace

InflationLimit::InflationLimit(Bytes most) : before_{most_in_pieces, most_whole} {
  most_in_pieces = most_whole = most;
}

InflationLimit::~InflationLimit() {
  most_in_pieces = before_.in_pieces;
  most_whole = before_.whole;
}

InputFile::InputFile(const std::filesystem::path& file) : file_(file), raw_(opened(file)) {
  const int reason = errno;
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw InputError(file.string(), "is a folder; a file is needed.");
  }
  if (!*raw_ && !std::filesystem::exists(file, ignored)) throw InputError(file.string(), "does not exist.");
  if (!*raw_) throw InputError(file.string(), "cannot be read: " + std::string(std::strerror(reason)) + '.');
  if (!std::filesystem::is_regular_file(file, ignored)) raw_ = content_of(*raw_);
  recognise_compression();
}

InputFile::InputFile(std::istream& in, const std::string& name) : file_(name), raw_(content_of(in)) {
  recognise_compression();
}

InputFile::~InputFile() = default;

void InputFile::recognise_compression() {
  std::array<char, 4> first{};
  raw_->read(first.data(), first.size());
  const std::string_view start(first.data(), static_cast<std::size_t>(raw_->gcount()));
  raw_->clear();
  raw_->seekg(0);
  if (start.starts_with(kGzip)) unpacked_ = unpacking(*raw_, io::gzip_decompressor());
  if (start.starts_with(kZstd)) unpacked_ = unpacking(*raw_, io::zstd_decompressor());
}

std::size_t InputFile::unpack(char* place, std::size_t size) {
  try {
    std::istream& in = unpacked_ ? *unpacked_ : *raw_;
    if (!in) return 0;
    in.read(place, static_cast<std::streamsize>(size));
    const auto got = static_cast<std::size_t>(in.gcount());
    if (unpacked_) inflated_ += got;
    if (inflated_ > most_in_pieces) refuse_inflated(most_in_pieces);
    return got;
  } catch (const InputError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const io::gzip_error& error) {
    const bool is_cut =
        error.error() == io::gzip::bad_footer ||
        (error.error() == io::gzip::zlib_error && error.zlib_error_code() == io::zlib::buf_error);
    throw InputError(file_.string(), is_cut ? "the compressed file ends early: it was cut off."
                                            : "the compressed file is damaged or cut off.");
  } catch (const std::exception& error) {
    const char* const what = unpacked_ ? "the compressed file is damaged or cut off: " : "cannot be read: ";
    throw InputError(file_.string(), what + std::string(error.what()));
  }
}

void InputFile::refuse_inflated(Bytes most) const {
  throw InputError(file_.string(), "unpacks to more than " + format_bytes(most) +
                                       ". If that is right, allow more: --max-inflated " +
                                       exact_size_text(4 * most) + '.');
}

void InputFile::look_ahead(std::size_t size) {
  while (ahead_.size() < size) {
    const std::size_t before = ahead_.size();
    const std::size_t piece = std::min(size - before, kPiece);
    ahead_.resize(before + piece);
    ahead_.resize(before + unpack(ahead_.data() + before, piece));
    if (unpacked_ && ahead_.size() > most_whole) refuse_inflated(most_whole);
    if (ahead_.size() < before + piece) return;
  }
}

std::string_view InputFile::beginning() {
  look_ahead(kBeginning);
  return std::string_view{ahead_}.substr(0, kBeginning);
}

std::string_view InputFile::whole() {
  look_ahead(ahead_.max_size());
  return ahead_;
}

std::size_t InputFile::read(char* place, std::size_t size) {
  const std::size_t kept = std::min(size, ahead_.size() - taken_);
  std::copy_n(ahead_.data() + taken_, kept, place);
  taken_ += kept;
  return kept == size ? kept : kept + unpack(place + kept, size - kept);
}

std::string InputFile::rest() {
  look_ahead(ahead_.max_size());
  std::string content = std::move(ahead_);
  content.erase(0, std::exchange(taken_, 0));
  ahead_.clear();
  return content;
}

std::string read_input_file(const std::filesystem::path& file) { return InputFile(file).rest(); }

void LineProblems::throw_if_any(const std::string& file) {
  constexpr std::size_t kMost = 20;
  if (problems_.empty()) return;
  if (problems_.size() > kMost) {
    const std::size_t more = problems_.size() - kMost;
    problems_.resize(kMost);
    problems_.push_back({file, "has " + std::to_string(more) + " more problems like these."});
  }
  throw InputError(std::move(problems_));
}

CsvTable::CsvTable(const std::filesystem::path& file) {
  InputFile in(file);
  read(in);
}

CsvTable::CsvTable(InputFile& file) { read(file); }

void CsvTable::read(InputFile& file) {
  file_ = file.name();
  LineProblems problems;
  for (CsvRecord& record : csv_records(file.rest())) {
    const std::string place = file_ + ":" + std::to_string(record.line);
    if (record.fault) {
      const Problem problem{file_ + ":" + std::to_string(record.fault->line), record.fault->what};
      problems.guarded([&] { throw InputError({problem}); });
      if (header_.empty()) break;
    } else if (header_.empty()) {
      header_ = std::move(record.cells);
      for (auto column = header_.begin(); column != header_.end(); ++column) {
        if (std::find(header_.begin(), column, *column) != column) twice_.push_back(*column);
      }
    } else if (record.cells.size() == header_.size()) {
      rows_.push_back(std::move(record));
    } else {
      problems.guarded([&] {
        throw InputError(place, "has " + std::to_string(record.cells.size()) +
                                    " cells where the header has " + std::to_string(header_.size()) + ".");
      });
    }
  }
  problems.throw_if_any(file_);
  if (header_.empty()) throw InputError(file_, "is empty; a header line is expected.");
}

void CsvTable::require_columns(const std::vector<std::string>& known) const {
  std::vector<Problem> problems;
  for (auto column = header_.begin(); column != header_.end(); ++column) {
    if (std::find(known.begin(), known.end(), *column) == known.end()) {
      problems.push_back(
          {file_ + ":1", "unknown column \"" + *column + "\"." + suggest_name(*column, known)});
    } else if (std::find(header_.begin(), column, *column) != column) {
      problems.push_back({file_ + ":1", "has the column \"" + *column + "\" twice."});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

std::size_t CsvTable::find(std::string_view column) const {
  return static_cast<std::size_t>(std::find(header_.begin(), header_.end(), column) - header_.begin());
}

bool CsvTable::has(std::string_view column) const { return find(column) < header_.size(); }

std::string_view CsvTable::text(std::size_t row, std::string_view column, bool required) const {
  if (std::find(twice_.begin(), twice_.end(), column) != twice_.end()) {
    throw InputError(file_ + ":1", "has the column \"" + std::string(column) + "\" twice.");
  }
  const std::size_t at = find(column);
  if (at < header_.size()) return rows_[row].cells[at];
  if (!required) return {};
  throw InputError(file_ + ":1", "has no column \"" + std::string(column) + "\".");
}

double CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string_view cell = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size() || !(value >= 0)) {
    wrong(row, column, "is not a number of at least 0.");
  }
  if (value > 1e15) wrong(row, column, "is out of range; allowed is 0 to 1e15.");
  return value;
}

double CsvTable::number_or(std::size_t row, std::string_view column, double otherwise) const {
  return text(row, column, false).empty() ? otherwise : number(row, column);
}

std::int64_t CsvTable::whole(std::size_t row, std::string_view column, std::int64_t low,
                             std::int64_t high) const {
  const double value = number(row, column);
  if (value >= static_cast<double>(low) && value <= static_cast<double>(high) && value == std::floor(value)) {
    return static_cast<std::int64_t>(value);
  }
  wrong(row, column,
        "is not a whole number from " + std::to_string(low) + " to " + std::to_string(high) + '.');
}

SimTime CsvTable::seconds(std::size_t row, std::string_view column) const {
  const double value = number(row, column);
  if (value > kMostSeconds) {
    wrong(row, column,
          "is out of range; allowed is 0 to 1000000000 seconds (31 years). Give seconds from "
          "the beginning of the list, not milliseconds or dates.");
  }
  return from_seconds(value);
}

Bytes CsvTable::size(std::size_t row, std::string_view column) const {
  const auto size = parse_bytes(text(row, column));
  if (!size) wrong(row, column, "is not a size. Write 12GiB, 12288MiB or a number of bytes.");
  if (*size > kMostBytes) wrong(row, column, "is out of range; allowed is up to 1024.0 GiB.");
  return *size;
}

void CsvTable::wrong(std::size_t row, std::string_view column, const std::string& what) const {
  throw InputError(file_ + ":" + std::to_string(rows_[row].line),
                   std::string(column) + " \"" + std::string(text(row, column, false)) + "\" " + what);
}

}  // namespace vramlab
