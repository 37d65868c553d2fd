#include "trace/input_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

using namespace std::string_view_literals;
constexpr std::string_view kGzip = "\x1f\x8b"sv;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd"sv;

template <class Filter>
std::string unpack(const std::filesystem::path& file, const std::string& packed, const Filter& filter) {
  namespace io = boost::iostreams;
  try {
    std::istringstream source(packed);
    io::filtering_istream in;
    in.push(filter);
    in.push(source);
    std::ostringstream content;
    io::copy(in, content);
    return std::move(content).str();
  } catch (const std::exception& error) {
    throw InputError(file.string(), "the compressed file is damaged: " + std::string(error.what()));
  }
}

}  // namespace

std::string read_input_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file)) {
    throw InputError(file.string(), "the file cannot be read: " + std::string(std::strerror(errno)));
  }
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (content.starts_with(kGzip)) return unpack(file, content, boost::iostreams::gzip_decompressor());
  if (content.starts_with(kZstd)) return unpack(file, content, boost::iostreams::zstd_decompressor());
  return content;
}

}  // namespace vramlab
