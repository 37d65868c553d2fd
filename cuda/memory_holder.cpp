#include "cuda/memory_holder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iostream>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "cuda/card.hpp"

extern char** environ;  // POSIX declares it in no header

namespace vramlab {
namespace {

constexpr Bytes kPage = 2_MiB;

[[noreturn]] void fail(const std::string& what) {
  throw InputError("", "the process that holds the card's memory for others " + what +
                           ". Try the same without \"others\", or on a card of the scenario's own size.");
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(std::string{"got no pipe: "} + std::strerror(errno));
  return {ends[0], ends[1]};
}

}  // namespace

// In few large pieces, and where those no longer fit in smaller ones.
void CardBallast::hold(Bytes bytes) {
  const Bytes target = round_up(bytes, kPage);
  for (; held_ > target; pieces_.pop_back()) {
    segments_.release(pieces_.back().base);
    held_ -= pieces_.back().size;
  }
  for (Bytes piece = 1_GiB; held_ < target && piece >= kPage;) {
    piece = std::min(piece, target - held_);
    if (const auto base = segments_.reserve(piece)) {
      pieces_.push_back({*base, piece});
      held_ += piece;
    } else {
      piece = piece == kPage ? 0 : std::max(kPage, piece / 2 / kPage * kPage);
    }
  }
}

MemoryHolder::MemoryHolder(const std::string& program) {
  const Pipe in = make_pipe();
  const Pipe out = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, STDOUT_FILENO);
  std::string name = "vramlab";
  std::string verb = kHolderVerb;
  std::array<char*, 3> words{name.data(), verb.data(), nullptr};
  const int error = posix_spawn(&process_, program.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in.read_end);
  close(out.write_end);
  to_holder_ = in.write_end;
  from_holder_ = out.read_end;
  if (error != 0) {
    process_ = -1;
    stop();
    fail(std::string{"did not start: "} + std::strerror(error));
  }
  try {
    hold(0);  // its context is open when it answers
  } catch (...) {
    stop();
    throw;
  }
}

MemoryHolder::~MemoryHolder() { stop(); }

void MemoryHolder::stop() noexcept {
  if (to_holder_ >= 0) close(to_holder_);  // the end of its input
  if (from_holder_ >= 0) close(from_holder_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
  process_ = to_holder_ = from_holder_ = -1;
}

Bytes MemoryHolder::hold(Bytes bytes) { return ask("hold " + std::to_string(bytes) + "\n"); }

Bytes MemoryHolder::leave_free(Bytes bytes) { return ask("leave " + std::to_string(bytes) + "\n"); }

Bytes MemoryHolder::ask(const std::string& request) {
  // Were it gone, writing would end this process with a signal.
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  const ssize_t written = write(to_holder_, request.data(), request.size());
  sigaction(SIGPIPE, &before, nullptr);
  if (written != static_cast<ssize_t>(request.size())) fail("has ended");

  std::string answer;
  for (char letter = 0; letter != '\n';) {
    const ssize_t got = read(from_holder_, &letter, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("has ended (its own message stands above)");
    answer += letter;
  }
  Bytes held = 0;
  const auto parsed = std::from_chars(answer.data(), answer.data() + answer.size() - 1, held);
  if (parsed.ec != std::errc{}) fail("answered \"" + answer + "\"");
  return held;
}

// What the second process does.

int run_memory_holder() {
  open_card();
  CardBallast memory;
  std::string request;
  Bytes bytes = 0;
  while (std::cin >> request >> bytes) {
    if (request == "leave") {
      const Bytes all = memory.held() + card_free();
      memory.hold(all - std::min(all, bytes));
    } else {
      memory.hold(bytes);
    }
    std::cout << memory.held() << std::endl;
  }
  return 0;
}

}  // namespace vramlab
