// Files are written beside their place and renamed at the end, so that a failure loses nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

namespace vramlab {

/// Puts `content` into `path`, replacing what was there only after every byte is on disk. A link keeps
/// pointing where it did; a device or a pipe is written to.
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

}  // namespace vramlab
