// The program `vramlab`: help, version, and the verb that its first word names.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/ranks.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"

namespace vramlab {
namespace {

int print(const std::string& text, int code = kDone) {
  print_to(nullptr, text);
  return code;
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) return print(help(), kBadInput);
  const std::string& first = words.front();
  if (first == "--version") return print("vramlab " VRAMLAB_VERSION "\n");
  if (first == "help" || first == "--help" || first == "-h") {
    return print(words.size() > 1 ? help_of(find_verb(words[1])) : help());
  }
  const auto device = [&] { return words.size() > 1 ? std::stoi(words[1]) : 0; };
  if (first == "hold-card-memory")
    return hold_card_memory(device());  // for the program itself, and in no list
  if (first == "perform-card-job") return perform_card_job(device());
  return run_verb(words);
}

// Other verbs run on every rank, as any program does under mpirun.
bool hands_out_tasks(const std::vector<std::string>& words) {
  return !words.empty() && std::ranges::any_of(verbs(), [&](const Verb& verb) {
    return verb.name == words.front() && verb.has_tasks;
  });
}

// What every rank would say, rank 0 says.
int run_as_rank(const RankPlace& place, const std::vector<std::string>& words) {
  if (place.rank > 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return kInternalError;
  std::unique_ptr<RankJob> job;
  const Ending ending = ending_of([&] {
    job = join_job();
    return run_verb(words, nullptr, job->workers());
  });
  if (job) return job->end(ending);
  if (place.rank > 0) return kDone;
  std::cerr << ending.error;
  return ending.code;
}

// A rank works in a process of its own, and this one, which mpirun knows, says what became of it: mpirun's
// own code for a process that a signal ends is 128 and the signal.
int run_as_watched_rank(const RankPlace& place, const std::vector<std::string>& words) {
  const pid_t watcher = ::getpid();
  const pid_t worker = ::fork();
  if (worker < 0) return run_as_rank(place, words);
  if (worker == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return ::getppid() == watcher ? run_as_rank(place, words) : kInternalError;
  }
  ::prctl(PR_SET_NAME, "vramlab-watch");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_IGN);  // the worker has them as well, and ends
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::cerr << fmt::format("rank {}: ended by signal {} ({})\n", place.rank, WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
  return kInternalError;
}

// Step programs are written and dropped by the thousand. The C library would give their pages back to the
// kernel and ask for them anew each time: more than half of an epoch's time (docs/performance.md).
void keep_freed_pages() {
  constexpr int kTrim = 512 << 20;  // bytes free at the top of a heap before it shrinks
  constexpr int kMap = 32 << 20;    // bytes from which an allocation is mapped alone; the most there is
  mallopt(M_TRIM_THRESHOLD, kTrim);
  mallopt(M_MMAP_THRESHOLD, kMap);
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  int number = otherwise;
  if (text != nullptr) std::from_chars(text, text + std::string_view{text}.size(), number);
  return number;
}

}  // namespace

RankPlace rank_place() {
  return {number_from("OMPI_COMM_WORLD_RANK", 0), number_from("OMPI_COMM_WORLD_SIZE", 1)};
}

}  // namespace vramlab

int main(int argc, char** argv) {
  vramlab::keep_freed_pages();
  std::signal(SIGPIPE, SIG_IGN);  // who reads the text may go; the files are still written (print_to)
  const std::vector<std::string> words{argv + 1, argv + argc};
  const vramlab::RankPlace place = vramlab::rank_place();
  if (place.size > 1 && vramlab::hands_out_tasks(words)) return vramlab::run_as_watched_rank(place, words);
  const vramlab::Ending ending = vramlab::ending_of([&] { return vramlab::run(words); });
  std::cerr << ending.error;
  return ending.code;
}
