#include "cuda/child_process.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"

extern char** environ;  // POSIX declares it in no header

namespace vramlab {
namespace {

constexpr std::size_t kLongestAnswer = 1000;  // a few numbers; more is not an answer

/// Were the reader gone, writing would end this process with a signal.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;
  ~WithoutPipeSignal() { sigaction(SIGPIPE, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

}  // namespace

ChildProcess::ChildProcess(const std::string& program, const std::string& verb, std::string role, int device)
    : role_(std::move(role)) {
  std::array<int, 2> in{-1, -1};
  std::array<int, 2> out{-1, -1};
  const bool piped = pipe2(in.data(), O_CLOEXEC) == 0 && pipe2(out.data(), O_CLOEXEC) == 0;
  int error = piped ? 0 : errno;
  if (piped) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::string name = "vramlab";
    std::string word = verb;
    std::string number = std::to_string(device);
    std::array<char*, 4> words{name.data(), word.data(), number.data(), nullptr};
    error = posix_spawn(&process_, program.c_str(), &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
  }
  for (const int end : {in[0], out[1]}) {
    if (end >= 0) close(end);
  }
  to_ = in[1];
  from_ = out[0];
  if (error == 0) return;
  process_ = -1;
  stop();
  fail(std::string{"did not start: "} + std::strerror(error));
}

ChildProcess::ChildProcess(int to, int from, std::string role)
    : role_(std::move(role)), to_(to), from_(from) {}

ChildProcess::~ChildProcess() { stop(); }

void ChildProcess::stop() noexcept {
  if (to_ >= 0) close(to_);  // the end of its input
  if (process_ > 0 && hangs_) kill(process_, SIGKILL);
  std::array<char, 256> rest{};
  while (!hangs_ && from_ >= 0) {  // until it has closed its output: it is over then
    const ssize_t got = read(from_, rest.data(), rest.size());
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  if (from_ >= 0) close(from_);
  if (process_ > 0) {
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  process_ = to_ = from_ = -1;
}

void ChildProcess::fail(const std::string& what) const { throw InputError("", role_ + " " + what); }

void ChildProcess::send(const std::string& request) {
  const WithoutPipeSignal without;
  for (std::size_t done = 0; done < request.size();) {
    const ssize_t written = write(to_, request.data() + done, request.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("has ended (its own message stands above, if it had one).");
    done += static_cast<std::size_t>(written);
  }
}

std::string ChildProcess::ask(const std::string& request, SimTime patience) {
  send(request);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string answer;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = from_, .events = POLLIN, .revents = 0};
    const int ready = left.count() > 0 ? poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      hangs_ = true;
      fail("gave no answer within " + std::to_string(patience / std::chrono::seconds{1}) + " s.");
    }
    char letter = 0;
    const ssize_t got = read(from_, &letter, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("has ended (its own message stands above, if it had one).");
    if (letter == '\n') return answer;
    answer += letter;
    if (answer.size() > kLongestAnswer) {
      hangs_ = true;  // it may write on and never look at its input
      fail("answered with more than a line: \"" + answer.substr(0, 40) + "…\".");
    }
  }
}

}  // namespace vramlab
