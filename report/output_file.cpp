#include "report/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/units.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

/// A file that vanishes unless it is renamed into place. Until then it has no name where the file system can
/// do that, so that not even a killed program leaves a piece of it behind.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target)
      : target_(target), path_(target.string() + ".part" + std::to_string(::getpid())) {
    struct stat old {};
    const bool replaces = ::stat(target.c_str(), &old) == 0;
    if (replaces && ::access(target.c_str(), W_OK) != 0) fail();  // a rename would not ask
    const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path{"."};
    descriptor_ = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);
    named_ = descriptor_ < 0;
    if (named_) descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) {
      named_ = false;
      fail();
    }
    if (replaces) take_over(old);
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (named_) ::unlink(path_.c_str());
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
    if (!named_) {
      const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
      if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0) fail();
      named_ = true;
    }
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail();
    named_ = false;
  }

 private:
  // Owner and group as far as we may; without them, nothing of the mode that would act for another owner.
  void take_over(const struct stat& old) const {
    const bool owned = ::fchown(descriptor_, old.st_uid, old.st_gid) == 0;
    if (::fchmod(descriptor_, old.st_mode & (owned ? 07777U : 0777U)) != 0) fail();
  }

  [[noreturn]] void fail() const {
    throw InputError(target_.string(), std::string{"cannot be written: "} + std::strerror(errno) + ".");
  }

  fs::path target_;
  fs::path path_;
  int descriptor_ = -1;
  bool named_ = false;  ///< `path_` is there and ours
};

// Where a link leads, even if nothing is there yet.
fs::path link_target(fs::path path) {
  constexpr int kLongestChain = 40;  // as the kernel
  std::error_code failed;
  for (int i = 0; i < kLongestChain && fs::is_symlink(path, failed); ++i) {
    const fs::path next = fs::read_symlink(path, failed);
    if (failed) break;
    path = path.parent_path() / next;  // an absolute one replaces all
  }
  return path;
}

// A device or a pipe is written to; it must not be replaced by a file.
class Stream {
 public:
  explicit Stream(const fs::path& path) : path_(path), file_{path, std::ios::binary | std::ios::app} {}

  void write(std::string_view content) {
    file_.write(content.data(), static_cast<std::streamsize>(content.size()));
    check();
  }
  void close() {
    file_.close();
    check();
  }

 private:
  void check() const {
    if (!file_) throw InputError(path_.string(), "cannot be written.");
  }

  fs::path path_;
  std::ofstream file_;
};

}  // namespace

class OutputFile::Target {
 public:
  explicit Target(const fs::path& path) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);  // of what a link points to
    if (fs::is_directory(status)) throw InputError(path.string(), "cannot be written: it is a folder.");
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      stream_.emplace(path);
      return;
    }
    file_.emplace(link_target(path));
  }

  void write(std::string_view piece) { file_ ? file_->write(piece) : stream_->write(piece); }
  void commit() { file_ ? file_->rename_into_place() : stream_->close(); }

 private:
  std::optional<TemporaryFile> file_;
  std::optional<Stream> stream_;
};

OutputFile::OutputFile(const fs::path& path) : target_(std::make_unique<Target>(path)) {}
OutputFile::~OutputFile() = default;
void OutputFile::write(std::string_view piece) { target_->write(piece); }
void OutputFile::commit() { target_->commit(); }

void write_file(const fs::path& path, std::string_view content) {
  OutputFile file{path};
  file.write(content);
  file.commit();
}

void require_room(const fs::path& path, std::uint64_t bytes, std::string_view remedy) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  const fs::path folder = link_target(path).parent_path();
  const fs::space_info room = fs::space(folder.empty() ? fs::path{"."} : folder, unknown);
  if (unknown || bytes <= room.available) return;
  throw InputError(path.string(), "would have at least " + format_bytes(bytes) + "; " +
                                      format_bytes(room.available) + " are free there. " +
                                      std::string{remedy});
}

GrowingFile::GrowingFile(const fs::path& path) : path_(path) {
  std::error_code ignored;
  made_ = !fs::exists(path, ignored);
  if (!made_ && !fs::is_regular_file(path, ignored))
    throw InputError(path.string(), "is not a regular file.");
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail();
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const bool taken = errno == EWOULDBLOCK;
  ::close(descriptor_);
  if (!taken) fail();
  throw InputError(path.string(), "another program is writing it. Wait for that one, or name another file.");
}

GrowingFile::~GrowingFile() {
  struct stat file {};
  struct stat named {};  // by now another file may be in its place
  const bool is_own =
      ::fstat(descriptor_, &file) == 0 && ::stat(path_.c_str(), &named) == 0 && file.st_ino == named.st_ino;
  if (made_ && is_own && file.st_size == 0) ::unlink(path_.c_str());
  ::close(descriptor_);
}

void GrowingFile::append(std::string_view lines) {
  off_t end = ::lseek(descriptor_, 0, SEEK_END);
  for (char last = '\0'; end > 0; --end) {  // a program that was killed may have left a piece of a line
    if (::pread(descriptor_, &last, 1, end - 1) != 1) fail();
    if (last == '\n') break;
  }
  if (end < 0 || ::ftruncate(descriptor_, end) != 0) fail();
  for (off_t at = end; !lines.empty();) {
    const ssize_t written = ::pwrite(descriptor_, lines.data(), lines.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      if (::ftruncate(descriptor_, end) == 0) errno = reason;
      fail();
    }
    at += written;
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
}

void GrowingFile::fail() const {
  throw InputError(path_.string(), std::string{"cannot be written: "} + std::strerror(errno) + ".");
}

}  // namespace vramlab
