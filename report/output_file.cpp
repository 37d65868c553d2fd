#include "report/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

/// A file that vanishes unless it is renamed into place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target)
      : target_(target), path_(target.string() + ".part" + std::to_string(::getpid())) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail();
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!renamed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view content) {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      content.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void rename_into_place() {
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail();
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail();
    renamed_ = true;
  }

 private:
  [[noreturn]] void fail() const {
    throw InputError(target_.string(), std::string{"cannot be written: "} + std::strerror(errno) + ".");
  }

  fs::path target_;
  fs::path path_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

// A device or a pipe is written to; it must not be replaced by a file.
void write_through(const fs::path& path, std::string_view content) {
  std::ofstream file{path, std::ios::binary | std::ios::app};
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw InputError(path.string(), "cannot be written.");
}

}  // namespace

void write_file(const fs::path& path, std::string_view content) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);  // of what a link points to
  if (fs::is_directory(status)) throw InputError(path.string(), "cannot be written: it is a folder.");
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_through(path, content);
  const fs::path resolved = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
  TemporaryFile file{resolved.empty() ? path : resolved};
  file.write(content);
  file.rename_into_place();
}

}  // namespace vramlab
