// Files are written beside their place and renamed at the end, so that a failure loses nothing; or they grow
// line by line, so that what was finished is kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace vramlab {

/// Puts `content` into `path`, replacing what was there only after every byte is on disk; mode and, where
/// that is allowed, owner are those of the file replaced. A link keeps pointing where it did, and its target
/// is written; a device or a pipe is written to.
/// Throws InputError naming the path and the system's reason (missing folder, no space, no permission);
/// then the old file is untouched and no temporary file stays.
void write_file(const std::filesystem::path& path, std::string_view content);

/// The same for content that comes piece by piece. Without commit() the old file stays.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view piece);

  /// Puts the file into its place. Last of all calls.
  void commit();

 private:
  class Target;
  std::unique_ptr<Target> target_;
};

/// Throws InputError if a file of `bytes` has no room where `path` is, with `remedy` as what to do. Where the
/// system does not say how much is free, and for a device or a pipe, nothing is checked.
void require_room(const std::filesystem::path& path, std::uint64_t bytes, std::string_view remedy);

/// A file of lines that grows while a program works, and that no other program may write meanwhile.
class GrowingFile {
 public:
  /// Makes the file if there is none. Throws InputError if it cannot be written, is no regular file, or
  /// another program has it.
  explicit GrowingFile(const std::filesystem::path& path);
  /// A file that was made for this and is still empty goes.
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  /// Puts `lines` behind the last whole line, with the system when this returns: they outlive the program,
  /// not the machine. Throws InputError with the system's reason; the file then is as it was.
  void append(std::string_view lines);

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  bool made_ = false;
};

}  // namespace vramlab
