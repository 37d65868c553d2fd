#include "trace/input_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace io = boost::iostreams;
using namespace std::string_view_literals;

constexpr std::string_view kGzip = "\x1f\x8b"sv;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd"sv;
constexpr std::streamsize kPiece = 1 << 18;

template <class Filter>
std::unique_ptr<std::istream> unpacking(std::istream& raw, const Filter& filter) {
  auto in = std::make_unique<io::filtering_istream>();
  in->push(filter, kPiece);
  in->push(raw, kPiece);
  in->exceptions(std::ios::badbit);  // else a damaged file looks like its end
  return in;
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
  if (!std::filesystem::is_regular_file(file, ignored)) {  // a pipe cannot go back to its first bytes
    auto whole = std::make_unique<std::stringstream>();
    *whole << raw_->rdbuf();
    whole->clear();  // of an empty one
    raw_ = std::move(whole);
  }
  std::array<char, 4> first{};
  raw_->read(first.data(), first.size());
  const std::string_view start(first.data(), static_cast<std::size_t>(raw_->gcount()));
  raw_->clear();
  raw_->seekg(0);
  if (start.starts_with(kGzip)) unpacked_ = unpacking(*raw_, io::gzip_decompressor());
  if (start.starts_with(kZstd)) unpacked_ = unpacking(*raw_, io::zstd_decompressor());
}

InputFile::~InputFile() = default;

std::size_t InputFile::read(char* place, std::size_t size) {
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

std::string read_input_file(const std::filesystem::path& file) {
  InputFile in(file);
  std::string content;
  while (true) {
    const std::size_t before = content.size();
    content.resize(before + kPiece);
    const std::size_t read = in.read(content.data() + before, kPiece);
    content.resize(before + read);
    if (read < static_cast<std::size_t>(kPiece)) return content;
  }
}

}  // namespace vramlab
