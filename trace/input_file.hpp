// Reading the files that users hand in, compressed or not.
#pragma once

#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>

namespace vramlab {

/// A file read piece by piece; gzip and zstd are recognised by their first bytes and unpacked on the way.
class InputFile {
 public:
  /// Throws InputError if the file cannot be opened.
  explicit InputFile(const std::filesystem::path& file);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Puts the next `size` bytes at `place`, or as many as are left, and returns how many those were.
  /// Throws InputError if a compressed file is damaged.
  std::size_t read(char* place, std::size_t size);

 private:
  std::filesystem::path file_;
  std::unique_ptr<std::istream> raw_;
  std::unique_ptr<std::istream> unpacked_;  ///< over `raw_`; none for a plain file
};

/// The whole content of a file, unpacked. Throws InputError if it cannot be opened or is damaged.
std::string read_input_file(const std::filesystem::path& file);

}  // namespace vramlab
