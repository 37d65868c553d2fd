#include "recordings/input_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include "core/error.hpp"

namespace vramlab {
namespace {

namespace io = boost::iostreams;
using namespace std::string_view_literals;

constexpr std::string_view kGzip = "\x1f\x8b"sv;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd"sv;
constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr std::size_t kBeginning = std::size_t{1} << 16;

template <class Filter>
std::unique_ptr<std::istream> unpacking(std::istream& raw, const Filter& filter) {
  auto in = std::make_unique<io::filtering_istream>();
  in->push(filter, std::streamsize{kPiece});
  in->push(raw, std::streamsize{kPiece});
  in->exceptions(std::ios::badbit);  // else a damaged file looks like its end
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

InputFile::InputFile(const std::filesystem::path& file)
    : file_(file), raw_(std::make_unique<std::ifstream>(file, std::ios::binary)) {
  const int reason = errno;
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw InputError(file.string(), "is a folder; a file is needed.");
  }
  if (!*raw_ && !std::filesystem::exists(file, ignored))
    throw InputError(file.string(), "there is no such file.");
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
    return static_cast<std::size_t>(in.gcount());
  } catch (const std::exception& error) {
    const char* const what = unpacked_ ? "the compressed file is damaged or cut off: " : "cannot be read: ";
    throw InputError(file_.string(), what + std::string(error.what()));
  }
}

void InputFile::look_ahead(std::size_t size) {
  while (ahead_.size() < size) {
    const std::size_t before = ahead_.size();
    const std::size_t piece = std::min(size - before, kPiece);
    ahead_.resize(before + piece);
    ahead_.resize(before + unpack(ahead_.data() + before, piece));
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
    if (!record.closed) throw InputError(place, "a quoted cell never ends.");
    if (header_.empty()) {
      header_ = std::move(record.cells);
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
    wrong(row, column, "is not a number of at least 0.");
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
