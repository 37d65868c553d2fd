#include "lab/isolation.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/scenario/policies.hpp"
#include "plugins/guard.hpp"

namespace vramlab {
namespace {

[[noreturn]] void fail_for_want_of_a_process() {
  throw InputError("--isolate", std::string{"no process can be made: "} + std::strerror(errno) + ".");
}

// In the child: what a policy prints is printed again when it runs in the program.
[[noreturn]] void run_alone(const ScenarioDocument& document, int done) {
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  try {
    read_experiment(document, {.decisions = true})->run({});
  } catch (...) {
    // The program says it when it reads the same.
  }
  const char kDone = 'k';
  const bool told = ::write(done, &kDone, 1) == 1;
  ::_exit(told ? 0 : 1);
}

bool is_ready(int descriptor, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd one{descriptor, POLLIN, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// What the one policy of `document` does that no policy may; empty if it is nothing.
std::optional<std::string> fault_of(const ScenarioDocument& document, std::chrono::seconds limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_for_want_of_a_process();
  std::fflush(nullptr);  // else exit() in the child would print what waits here
  const pid_t child = ::fork();
  if (child < 0) fail_for_want_of_a_process();
  if (child == 0) {
    ::close(ends[0]);
    run_alone(document, ends[1]);
  }
  ::close(ends[1]);
  const bool in_time = is_ready(ends[0], limit);
  char done = 0;
  const bool well = in_time && ::read(ends[0], &done, 1) == 1;
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  const int status = status_of(child);
  if (well) return std::nullopt;
  if (!in_time) return fmt::format("took longer than {} s", limit.count());
  if (WIFSIGNALED(status)) return fmt::format("crashed ({})", ::strsignal(WTERMSIG(status)));
  return fmt::format("ended the program with exit code {}", WEXITSTATUS(status));
}

bool is_of_plugin(const PolicySet& known, const std::string& policy) {
  return std::ranges::any_of(known.plugins, [&](const PolicyPlugin& plugin) {
    return std::ranges::find(plugin.policies, policy) != plugin.policies.end();
  });
}

// The scenario's own plugins, without which its policies are not known. What cannot be loaded its reader
// says.
void load_plugins(ScenarioDocument& document) {
  if (!document.json.contains("plugins") || !document.json["plugins"].is_array()) return;
  std::vector<std::string> files;
  for (const Json& file : document.json["plugins"]) {
    if (file.is_string()) files.push_back(file.get<std::string>());
  }
  FileProblems unheard{document.file};
  document.policies = with_plugins(files, document.file, document.policies, unheard);
}

}  // namespace

ScenarioDocument isolated(ScenarioDocument document, std::chrono::seconds limit) {
  if (!document.json.is_object() || !document.json.contains("policies")) return document;
  load_plugins(document);
  ScenarioDocument alone = document;
  for (const char* key : {"expect", "sweep", "seeds"}) alone.json.erase(key);
  for (const Json& policy : document.json["policies"]) {
    if (!policy.is_object() || !policy.contains("use") || !policy["use"].is_string()) continue;
    const auto use = policy["use"].get<std::string>();
    if (!is_of_plugin(*document.policies, use)) continue;
    alone.json["policies"] = Json::array({policy});
    const auto fault = fault_of(alone, limit);
    if (fault) document.policies = with_fault(document.policies, use, *fault);
  }
  return document;
}

}  // namespace vramlab
