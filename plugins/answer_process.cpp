#include "plugins/answer_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vramlab {
namespace {

// A saved state is the largest answer (kMostSavedNumbers, kLongestSavedText).
constexpr std::uint32_t kLongestMessage = std::uint32_t{1} << 28;

[[noreturn]] void fail_for_want_of_a_process() {
  throw InputError("--isolate", std::string{"no process can be made: "} + std::strerror(errno) + ".");
}

// What is open belongs to the program, which writes the same itself.
void close_all_but(int kept) {
  std::vector<int> open{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    open.push_back(std::atoi(entry.path().filename().c_str()));
  }
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : open) {
    if (descriptor != kept && descriptor != nowhere && ::fcntl(descriptor, F_GETFD) >= 0) {
      ::dup2(nowhere, descriptor);
    }
  }
}

int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

AnswerProcess::AnswerProcess(std::chrono::seconds limit) : limit_(limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_for_want_of_a_process();
  std::fflush(nullptr);  // else exit() in the copy would print what waits here
  child_ = ::fork();
  if (child_ < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    fail_for_want_of_a_process();
  }
  pipe_ = ends[is_copy() ? 1 : 0];
  if (!is_copy()) {
    ::close(ends[1]);
    return;
  }
  ::signal(SIGPIPE, SIG_DFL);  // the program is gone: so is what this is for
  close_all_but(pipe_);
}

AnswerProcess::~AnswerProcess() {
  if (is_copy()) ::_exit(0);
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    status_of(child_);
  }
  ::close(pipe_);
}

void AnswerProcess::send(const std::string& message) {
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string all(sizeof size, '\0');
  std::memcpy(all.data(), &size, sizeof size);
  all += message;
  for (std::size_t done = 0; done < all.size();) {
    const ssize_t wrote = ::write(pipe_, all.data() + done, all.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      ::_exit(1);
    }
  }
}

std::string AnswerProcess::take(std::size_t size) {
  std::string taken = read_.substr(at_, size);
  at_ += size;
  if (at_ == read_.size()) {
    read_.clear();
    at_ = 0;
  }
  return taken;
}

// False if nothing came until then, or nothing will come.
bool AnswerProcess::read_more(std::chrono::steady_clock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd one{pipe_, POLLIN, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    std::array<char, 1 << 16> bytes{};
    const ssize_t got = ::read(pipe_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    read_.append(bytes.data(), static_cast<std::size_t>(got));
    return true;
  }
}

std::optional<std::string> AnswerProcess::receive(const std::string& asked) {
  if (child_ < 0) return std::nullopt;
  const auto until = std::chrono::steady_clock::now() + limit_;
  std::uint32_t size = 0;
  const auto has = [&](std::size_t wanted) {
    while (read_.size() - at_ < wanted) {
      if (!read_more(until)) return false;
    }
    return true;
  };
  if (has(sizeof size)) {
    std::memcpy(&size, take(sizeof size).data(), sizeof size);
    if (size <= kLongestMessage && has(size)) return take(size);
  }
  const bool late = std::chrono::steady_clock::now() >= until;
  if (late) ::kill(child_, SIGKILL);
  ::close(std::exchange(pipe_, -1));  // one that sends without an end stops at this
  const int status = status_of(std::exchange(child_, -1));
  ender_ = asked;
  if (late) {
    did_ = "took longer than " + std::to_string(limit_.count()) + " s";
  } else if (WIFSIGNALED(status)) {
    did_ = std::string{"crashed ("} + ::strsignal(WTERMSIG(status)) + ")";
  } else {
    did_ = "ended the program with exit code " + std::to_string(WEXITSTATUS(status));
  }
  return std::nullopt;
}

void AnswerProcess::give_up(const std::string& asked, const std::string& did) {
  ::kill(child_, SIGKILL);
  status_of(std::exchange(child_, -1));
  ender_ = asked;
  did_ = did;
}

std::string AnswerProcess::end(const std::string& asked) const {
  if (asked == ender_) return "the policy " + asked + " of a plugin " + did_;
  return "the policy " + asked + " of a plugin ran in one process with the policy " + ender_ + ", which " +
         did_;
}

}  // namespace vramlab
